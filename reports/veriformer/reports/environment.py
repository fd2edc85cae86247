"""The Jinja environment of the pages: escaping, filters and what templates may call.

Formulas become MathML that a browser shows without help, as do those between dollar signs in prose. The converter is
not trusted: what it returns is rebuilt from the elements and attributes listed here, and LaTeX that it does not
understand is shown as it was written, in ``<code>``.
"""

from __future__ import annotations

import itertools
import re
from functools import cache, lru_cache
from urllib.parse import urlsplit
from xml.etree import ElementTree

import jinja2
from markupsafe import Markup, escape

from veriformer.bench.regression.record import duration
from veriformer.reports import charts, costs, equations, evidence
from veriformer.reports.findings import SHOWN_OPEN
from veriformer.reports.layout import row_anchor
from veriformer.reports.matrix import MOST_COLUMNS
from veriformer.reports.statuses import STATUS_STYLES
from veriformer.verify.presentation.recognised import deviations
from veriformer.verify.results.foreign import number

# fmt: off
_ELEMENTS = frozenset((
    "math", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
    "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr",
    "munder", "munderover", "none",
))
_ATTRIBUTES = frozenset((
    "accent", "accentunder", "depth", "display", "displaystyle", "fence", "form", "height", "largeop", "linethickness",
    "lspace", "mathvariant", "maxsize", "minsize", "movablelimits", "rspace", "scriptlevel", "separator", "stretchy",
    "symmetric", "voffset", "width",
))
# fmt: on
_THIN = "0.167em"
_WIDTHS = {
    "negativethinmathspace": "-0.167em",
    "thinmathspace": _THIN,
    "mediummathspace": "0.222em",
    "thickmathspace": "0.278em",
}
_ALIGNED = re.compile(r"\\(begin|end)\{(?:aligned|align|split|gathered)\}")
_LETTER = re.compile(r"\\mathrm\{(\w)\}")
_WORDS = re.compile(r"\\text\{([^{}\\]* [^{}\\]*)\}|\\q?quad(?![a-zA-Z])")
_PIECES = re.compile(r"\$([^$]+)\$|`([^`]+)`")


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
        "short": evidence.short,
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
        "comparison": costs.comparison,
        "fixed_letters": costs.fixed,
        "witness": costs.witness,
        "look": costs.look,
        "row_anchor": row_anchor,
        "row_evidence": evidence.row_evidence,
        "changes": costs.changes,
        "duration": duration,
        "growth": charts.growth,
        "levels": charts.levels,
    }
    return found


def web_address(link: str | None) -> str | None:
    """Return a link that may be followed, http or https; nothing that a browser would run."""
    try:
        return link if link and urlsplit(link).scheme in ("http", "https") else None
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def math(latex: str, *, display: bool = False) -> Markup:
    """Return ``<math>`` for a LaTeX formula, or ``<code>`` where it cannot be converted."""
    from latex2mathml.converter import convert

    written = _LETTER.sub(r"\\text{\1}", _ALIGNED.sub(r"\\\1{align*}", latex.strip()))
    try:
        root = ElementTree.fromstring(convert(written, display="block" if display else "inline"))
        return Markup(ElementTree.tostring(_rebuild(root), encoding="unicode"))
    except Exception:  # whatever a foreign converter makes of foreign text, the page must stand
        return Markup('<code class="latex">{}</code>').format(latex)


def prose(text: str | None) -> Markup:
    """Return escaped text, with ``$…$`` as formulas and text between backquotes as code."""
    parts, end = [], 0
    for found in _PIECES.finditer(text or ""):
        parts.append(escape((text or "")[end : found.start()]))
        formula, code = found.groups()
        parts.append(math(formula) if formula else Markup("<code>{}</code>").format(code))
        end = found.end()
    return Markup("").join([*parts, escape((text or "")[end:])])


def statement(latex: str | None, *, display: bool = False) -> Markup:
    r"""Return a statement in LaTeX as markup, split at ``\text{…}`` and ``\quad``, so that a long one wraps."""
    pieces = _WORDS.split(latex or "")  # formula, words, formula, …, formula
    formulas = [piece.strip() for piece in pieces[::2]]
    if not all(_closed(formula) for formula in formulas):
        return math(latex or "", display=display)
    words = [escape(" " if piece is None else piece) for piece in pieces[1::2]] + [Markup()]
    parts = [(math(f, display=display) if f else Markup()) + w for f, w in zip(formulas, words, strict=True)]
    return Markup("").join(parts)


def _closed(formula: str) -> bool:
    """Return whether nothing that is opened in a formula is closed outside of it."""
    bare = re.sub(r"\\[{}]", "", formula)
    depths = [bare[:end].count("{") - bare[:end].count("}") for end in range(len(bare) + 1)]
    fences = formula.count(r"\left") == formula.count(r"\right") + formula.count(r"\leftarrow")
    return min(depths) == depths[-1] == 0 and fences and formula.count(r"\begin") == formula.count(r"\end")


def _rebuild(old: ElementTree.Element) -> ElementTree.Element:
    tag = old.tag.rpartition("}")[2]
    text = old.text or ""
    if tag not in _ELEMENTS or "\\" in text or (tag == "mi" and text == "&"):
        raise ValueError(f"not MathML: {tag} {text!r}")
    if tag == "mo" and len(text) > 1 and text.isalpha():
        tag = "mi"  # the name of a function, not an operator with space around it
    new = ElementTree.Element(tag, _attributes(old))
    new.text = old.text
    new.extend(_spaced([_rebuild(child) for child in old]) if tag == "mrow" else [_rebuild(child) for child in old])
    return new


def _spaced(row: list[ElementTree.Element]) -> list[ElementTree.Element]:
    """Return a row with thin space between the names of functions and what stands beside them: "y log p", "f(x)"."""
    spaced = row[:1]
    for left, right in itertools.pairwise(row):
        if "mo" not in (left.tag, right.tag) and (_is_function(left) or _is_function(right)):
            spaced.append(ElementTree.Element("mspace", {"width": _THIN}))
        spaced.append(right)
    return spaced


def _is_function(element: ElementTree.Element) -> bool:
    base = element[0] if element.tag in ("msub", "msup", "munder", "msubsup") and len(element) else element
    return base.tag == "mi" and len(base.text or "") > 1 and (base.text or "").isalpha()


def _attributes(old: ElementTree.Element) -> dict[str, str]:
    kept = {key: _WIDTHS.get(value, value) for key, value in old.attrib.items() if key in _ATTRIBUTES}
    classes = [f"align-{old.attrib['columnalign']}"] if old.attrib.get("columnalign") in ("left", "right") else []
    if kept.get("mathvariant", "normal") != "normal":  # browsers know "normal" only; the style sheet does the others
        classes += [f"variant-{part}" for part in re.findall(r"bold|italic|sans-serif", kept["mathvariant"])]
        kept["mathvariant"] = "normal"
    return kept | ({"class": " ".join(classes)} if classes else {})
