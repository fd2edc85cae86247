"""Claims: the keys of ``CLAIMS``, and the conventions that may be claimed."""

from __future__ import annotations

from collections.abc import Iterable

from veriformer.spec.explanation import Explanation, Fact
from veriformer.verify.targets.claim_keys import CONVENTIONS, KEYS


def names() -> Iterable[str]:
    """Return the keys as they are reached in ``CLAIMS``, then the conventions."""
    return [*(f"CLAIMS.{key}" for key in KEYS), *CONVENTIONS]


def matching(word: str) -> Iterable[str]:
    """Return the claims of that name, of which ``CLAIMS.`` may be left out."""
    return [name for name in names() if word in (name, name.removeprefix("CLAIMS."))]


def explain(name: str) -> Explanation:
    """Return what is claimed by it, and how."""
    key = name.removeprefix("CLAIMS.")
    if key in KEYS:
        return Explanation(kind="claim", name=name, remark="claim", paragraphs=(KEYS[key],))
    known = CONVENTIONS[name]
    return Explanation(
        kind="claim",
        name=name,
        remark="convention",
        paragraphs=(known.meaning,),
        facts=(
            Fact("values, the contract's first", [f'"{value}"' for value in known.values], names="value"),
            Fact("claimed by", [f'`CLAIMS = {{"conventions": {{"{name}": "{known.values[1]}"}}}}`']),
        ),
    )
