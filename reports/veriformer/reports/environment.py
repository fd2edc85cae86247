"""The Jinja environment of the pages: escaping, filters and what templates may call."""

from __future__ import annotations

from functools import cache
from urllib.parse import urlsplit

import jinja2

from veriformer.reports import costs, equations, formatting
from veriformer.reports.findings import SHOWN_OPEN
from veriformer.reports.mathml import math, prose, statement
from veriformer.reports.matrix import MOST_COLUMNS
from veriformer.reports.statuses import STATUS_STYLES
from veriformer.verify.presentation.recognised import deviations
from veriformer.verify.results.foreign import number


@cache
def environment() -> jinja2.Environment:
    """Return the environment, whose templates are compiled once."""
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("veriformer.reports"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.ChainableUndefined,
    )
    found.filters |= {
        "math": math,
        "prose": prose,
        "statement": statement,
        "short": formatting.short,
        "web": web_address,
    }
    found.globals |= {
        "STATUS_STYLES": STATUS_STYLES,
        "SHOWN_OPEN": SHOWN_OPEN,
        "MOST_COLUMNS": MOST_COLUMNS,
        "deviations": deviations,
        "counted": number,
        "step_style": equations.step_style,
        "erratum_look": equations.erratum_look,
        "costs_sentence": costs.sentence,
        "cost_letters": costs.letters,
    }
    return found


def web_address(link: str | None) -> str | None:
    """Return a link that may be followed, http or https; nothing that a browser would run."""
    try:
        return link if link and urlsplit(link).scheme in ("http", "https") else None
    except ValueError:
        return None
