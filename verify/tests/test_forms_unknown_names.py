"""Arguments whose names nobody knows: what they do says what they are, and where it does not, nothing is guessed."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.source_texts import recognise_text
from veriformer.verify import bind
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Fit, Form, Match, Unfit, UnknownArgument
from veriformer.verify.forms.meanings import BUILT, CALLED, with_renamed_arguments
from veriformer.verify.recognition import by_behaviour
from veriformer.verify.recognition.recognise import Recognised, recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "unknown_names.py"


def recognised(name: str) -> Recognised:
    return recognise(getattr(module_of(FILE), name))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "operation", "found"),
    [
        ("FeedForward", "feed_forward", {"built_with_swelling": "ff_mult"}),
        ("Mlp", "feed_forward", {"built_with_breadth": "d_model"}),
        ("Attention", "multi_head_attention", {"built_with_looks_ahead": "True", "called_with_earlier": "None"}),
        (
            "dot_product_attention",
            "attention",
            {"called_with_asking": "q", "called_with_offered": "k", "called_with_carried": "v"},
        ),
        (
            "sinusoidal_table",
            "sinusoidal_encoding",
            {"called_with_rows": "num_positions", "called_with_columns": "d_model"},
        ),
    ],
)
def test_what_an_argument_does_says_what_it_is(name: str, operation: str, found: dict[str, str]) -> None:
    (pin,) = recognised(name).pins
    assert (pin.operation, pin.everywhere) == (operation, True)
    assert {key: x for key, x in pin.readings.items() if key.startswith((BUILT, CALLED))} == found
    assert len(pin.told) >= len(found)


@pytest.mark.whole
def test_a_fault_is_no_meaning() -> None:
    (pin,) = recognised("unscaled_attention").pins
    assert (pin.operation, pin.everywhere) == ("attention", False)


def test_a_pin_binds_by_what_was_found_out() -> None:
    module = module_of(FILE)
    table = bind(
        "functions/sinusoids", module.sinusoidal_table, called_with_rows="num_positions", called_with_columns="d_model"
    )
    assert torch.equal(table(5, 4), module.sinusoidal_table(5, 4))


def test_arguments_are_given_by_the_names_and_in_the_places_that_are_known() -> None:
    def theirs(a: int, b: int, c: int = 3) -> tuple[int, int, int]:
        return a, b, c

    own = inspect.signature(theirs).parameters
    call = with_renamed_arguments(theirs, ((CALLED + "a", "0"), (CALLED + "b", "x")), own)
    assert list(inspect.signature(call).parameters) == ["x", "c"]
    assert call(7) == (0, 7, 3)
    assert call(x=7, c=1) == (0, 7, 1)


def _form(explains: dict[str, Fit]) -> Form:
    """A form that asks what ``odd`` is, and is explained so well by each meaning."""

    def match(candidate: Candidate) -> Match | None:
        if not candidate.meanings:
            raise UnknownArgument("asks for 'odd'", CALLED + "odd", ("x", "y"))
        return Match(True, {})

    def bind(candidate: Candidate, readings: Any) -> Any:
        return lambda: dict(candidate.meanings)[CALLED + "odd"]

    judged = {**dict.fromkeys(("None", "0", "0.0", "False"), Fit(4, 0, 0, False, 0.0, 0.0)), **explains}
    return Form(name="odd", operation="odd", says="", match=match, bind=bind, judge=lambda function: judged[function()])


RIGHT, NEAR = Fit(4, 4, 4, True, 1.0, 1.0), Fit(4, 4, 2, False, 0.5, 0.8)


def test_where_two_meanings_explain_as_much_none_is_guessed() -> None:
    def odd(odd: int) -> int:
        return odd

    for fit in (RIGHT, NEAR):
        with pytest.raises(Unfit, match="may be 'x' or 'y', and no call tells which"):
            by_behaviour.read(_form({"x": fit, "y": fit}), Candidate("odd", odd), {})
    found = by_behaviour.read(_form({"x": NEAR, "y": RIGHT}), Candidate("odd", odd), {})
    assert found is not None
    assert found.candidate.meanings == ((CALLED + "odd", "y"),)
    assert found.match.told == ("its 'odd' is what others call 'y', by what it does",)


def test_the_claims_say_what_an_argument_is() -> None:
    def odd(odd: int) -> int:
        return odd

    found = by_behaviour.read(_form({"x": NEAR, "y": RIGHT}), Candidate("odd", odd), {"odd.called_with_odd": "x"})
    assert found is not None
    assert found.candidate.meanings == ((CALLED + "odd", "x"),)


def test_what_would_fill_the_memory_is_not_tried_by_chance() -> None:
    names = ("d_model", "max_len", "base")
    asked = {name: UnknownArgument("", BUILT + name, names) for name in ("pane", "longest_len")}
    assert {"max_len", "base"}.isdisjoint(by_behaviour.meanings_of(asked["pane"]))
    assert by_behaviour.meanings_of(asked["longest_len"])[0] == "max_len"


OVER_A_LIST = """
import math

def softmax(x, size):
    largest = x[0]
    for i in range(1, size):
        if x[i] > largest:
            largest = x[i]
    total = 0.0
    for i in range(size):
        x[i] = math.exp(x[i] - largest)
        total += x[i]
    for i in range(size):
        x[i] /= total
    return x
"""


def test_code_is_not_accused_by_its_name_where_its_arguments_were_guessed() -> None:
    found = recognise_text(OVER_A_LIST)
    assert not found.pins
    assert [(one.name, one.operation) for one in found.refused] == [("softmax", "softmax")]
