"""Layers of attention that turn queries and keys by tables of their own are judged with these set to one angle."""

from __future__ import annotations

from pathlib import Path

import pytest

from veriformer.verify import check
from veriformer.verify.forms.own_tables import TURNED_ALIKE
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "layers_with_own_tables.py"


@pytest.mark.parametrize("name", ["TabledAttention", "PlacedAttention"])
def test_attention_is_recognised_whose_tables_are_its_own(name: str) -> None:
    (pin,) = recognise(getattr(module_of(FILE), name)).pins
    assert (pin.operation, pin.everywhere) == ("multi_head_attention", True)
    assert TURNED_ALIKE[0] in pin.told


@pytest.mark.parametrize("name", ["InwardTurningAttention", "HalfTurnedTabledAttention", "RestartingTabledAttention"])
def test_a_layer_that_turns_otherwise_is_not_judged(name: str) -> None:
    assert not recognise(getattr(module_of(FILE), name)).pins


@pytest.mark.whole
@pytest.mark.parametrize(("name", "wrong"), [("TabledAttention", False), ("TiledTabledAttention", True)])
def test_the_heads_of_a_layer_with_own_tables_are_judged(name: str, wrong: bool) -> None:
    only = ["multi_head_attention.equation"]
    found = check(getattr(module_of(FILE), name), only=only, dtype=["fp64"], profile="quick")
    assert bool([one for one in found.findings if one.weight == "wrong"]) is wrong
