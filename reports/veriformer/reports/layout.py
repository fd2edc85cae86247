"""Pages of a report: one that holds everything, or an index with a page for each target, operation and equation, and
for each long section."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import PurePosixPath

from veriformer.reports.runs import Run
from veriformer.verify.results import Result

MOST_BYTES = 1_000_000
"""Bytes up to which a report is one page."""

INDEX = "index.html"
_LONGEST = 100
"""Characters of a name in that of its page."""


@dataclass(frozen=True)
class Layout:
    """Addresses of a report, which stay when it is written again.

    index: file name of the first page. split: whether what is long has pages of its own. here: the
    page that is being written.
    """

    index: str = INDEX
    split: bool = False
    here: str = INDEX

    def at(self, page: str) -> Layout:
        """Return the layout as another page sees it."""
        return replace(self, here=page)

    def page(self, name: str, kind: str = "") -> str:
        """Return the page that holds an operation or a section, or one of another kind: a target, an equation."""
        if not self.split:
            return self.index
        stem = PurePosixPath(self.index).stem
        folder = "pages" if self.index == INDEX else f"{stem}-pages"
        return f"{folder}/{f'{kind}-' if kind else ''}{_as_file(name)}.html"

    def link(self, page: str, anchor: str = "") -> str:
        """Return the address of a place, relative to the page that is being written."""
        place = f"#{anchor}" if anchor else ""
        if page == self.here and anchor:
            return place
        return posixpath.relpath(page, posixpath.dirname(self.here) or ".") + place


def _as_file(name: str) -> str:
    """Return a name as part of a file's; what is changed for that ends in its digest, so that no two meet."""
    word = re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:_LONGEST]
    return word if word == name else f"{word}-{sha256(name.encode(errors='replace')).hexdigest()[:8]}"


def row_anchor(run: Run, row: Result) -> str:
    """Return the name of a row's place on its page."""
    return f"v-{as_anchor(run.label)}-{as_anchor(row.key)}"


def as_anchor(text: str) -> str:
    """Return a text as part of an anchor."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text)
