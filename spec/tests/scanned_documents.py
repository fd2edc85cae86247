"""The source documents, where they are present, and the lines of theirs that say something: formulas, numbers, code."""

import os
import re
from pathlib import Path

RELATION = re.compile(
    r"[=<>≈≤≥→∈]|\\(?:approx|le|leq|ge|geq|lt|gt|in|to|gets|sim|propto|Rightarrow|leftarrow|ll|gg|ne|neq)\b"
)
COMPARISON = re.compile(
    r"\b(?:more|less|fewer|better|worse|larger|smaller|higher|lower|faster|slower|longer|shorter|deeper|steeper|closer"
    r"|than|most|least|same|identical|equal|exceeds?|majority|dominates?|too|unlike|instead|compared|similar)\b",
    re.IGNORECASE,
)
CAUSE = re.compile(
    r"\b(?:because|since|so that|thus|hence|therefore|by|ensur\w+|prevent\w*|enabl\w+|lead\w*|caus\w+|mak\w+|allow\w*"
    r"|helps?|helping|forc\w+|improv\w+|reduc\w+|increas\w+|decreas\w+|eliminat\w+|provid\w+|encourag\w+|avoid\w*"
    r"|requir\w+|creates?|stabiliz\w+|works?|controls?|solv\w+|maintain\w*|means|captures?|depends?|becomes?)\b",
    re.IGNORECASE,
)
FENCE = re.compile(r"^\s*```(.*)$")
PROSE = ("{admonition}", "{figure}")
"""Directives whose inside is text."""


def documents():
    """The texts of the documents by their numbers: of $VERIFORMER_DOCUMENTS, or of shared/seeds beside the checkout."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "seeds"
    folder = Path(os.environ.get("VERIFORMER_DOCUMENTS", beside))
    return {f.name[:3]: f.read_text(encoding="utf-8") for f in sorted(folder.glob("[0-9][0-9][0-9]_*.txt"))}


def scanned(text):
    """Lists of lines [first, last], by kind, that show something in a document."""
    found = {
        kind: []
        for kind in ("displayed formula", "row of a formula", "inline formula", "code", "number", "comparison", "cause")
    }
    start, fence = None, None
    for n, line in enumerate(text.split("\n"), 1):
        opens = FENCE.match(line)
        if start is not None and (line.strip() == "$$" or (opens and fence == "math")):
            found["displayed formula"].append([start, n])
            start = fence = None
        elif start is not None:
            if RELATION.search(line) or re.search(r"\d", line):
                found["row of a formula"].append([n, n])
        elif line.strip() == "$$" or (opens and opens[1].strip() == "math"):
            start, fence = n, "math" if opens else None
        elif opens:
            fence = None if fence is not None else opens[1].strip()
        elif fence is not None and not fence.startswith(PROSE):
            # Boxes and arrows are no code, nor are comments.
            drawn = line.encode("ascii", "ignore").decode().strip()
            if re.search(r"[A-Za-z]{2}|\d", drawn) and not drawn.startswith("#"):
                found["code"].append([n, n])
        else:
            for kind in _kinds(line):
                found[kind].append([n, n])
    return {kind: lines for kind, lines in found.items() if lines}


def _kinds(line):
    plain = re.sub(r"^\s*(?:#+\s*[\d.]*|[-*>]|\d+[.)]|\[\d+\])\s*", "", line)
    plain = re.sub(r"^\W*Step \d+:?|\bPart [12]\b|\bT5\b|\]\([^)]*\)|https?://\S+", "", plain)
    formula = re.compile(r"\$.+?\$|\\\(.+?\\\)")
    if formula.search(plain):
        yield "inline formula"
    words = formula.sub("", plain)
    if line.lstrip().startswith("#"):
        return
    if re.search(r"\d", words):
        yield "number"
    if COMPARISON.search(words):
        yield "comparison"
    if CAUSE.search(words):
        yield "cause"
