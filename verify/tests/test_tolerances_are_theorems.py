"""Tolerances are theorems: no comparison by a hand-set tolerance in verify, in spec, or of impl with anything."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BANNED = {"rtol", "atol", "allclose", "isclose", "assert_close", "assert_allclose", "approx", "assert_almost_equal"}
FILES = sorted(path for package in ("spec", "impl", "verify") for path in (ROOT / package).rglob("*.py"))


def banned(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each use of a hand-set tolerance: a name, an attribute, a keyword, a parameter or an import."""
    for node in ast.walk(ast.parse(source)):
        names = {
            ast.Name: lambda n: [n.id],
            ast.Attribute: lambda n: [n.attr],
            ast.keyword: lambda n: [n.arg],
            ast.arg: lambda n: [n.arg],
            ast.alias: lambda n: n.name.split("."),
        }.get(type(node), lambda n: [])(node)
        yield from ((getattr(node, "lineno", 0), name) for name in names if name in BANNED)


@pytest.mark.whole
def test_no_hand_set_tolerance() -> None:
    assert len(FILES) > 30
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}" for path in FILES for line, name in banned(path.read_text("utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "torch.allclose(a, b)",
        "a.isclose(b)",
        "close(a, b, rtol=1e-3)",
        "def f(x, atol): ...",
        "from pytest import approx",
        "from torch.testing import assert_close as same",
    ],
)
def test_every_spelling_is_seen(source: str) -> None:
    assert list(banned(source))
