"""Whole models and optimizers are recognised, and a fault in one is judged."""

from __future__ import annotations

import pytest
import torch

from tests.faulty_forms import form_file
from veriformer.verify import bind, check
from veriformer.verify.recognition.recognise import Recognised, recognise
from veriformer.verify.results import Status
from veriformer.verify.targets.source_files import module_of

FORMULAS = {"SGD": "gradient_descent", "SGDMomentum": "sgd_momentum", "AdamW": "adamw", "adam_step": "adam"}
OPTIMIZERS = {**FORMULAS, "Lion": "optimizer"}
NEXT = {"labels": "the next tokens", "ignored": "-1"}


def found_in(name: str) -> Recognised:
    """Return the recognised operations, without the layers of which the models are made."""
    found = recognise(module_of(form_file(name)))
    kept = {"causal_lm", *OPTIMIZERS.values()}
    pins = tuple(pin for pin in found.pins if pin.operation in kept)
    return Recognised(pins, tuple(one for one in found.refused if one.operation in kept), found.unknown)


def failed(file: str, name: str, *rows: str) -> set[str]:
    thing = getattr(module_of(form_file(file)), name)
    results = check(thing, only=list(rows), dtype=["fp64"], profile="quick")
    assert results.summary.get("pass", 0) + results.summary.get("fail", 0), results.summary
    return {row.requirement for row in results.violations}


@pytest.mark.whole
def test_whole_models_are_recognised() -> None:
    found = found_in("models")
    pins = {pin.name: pin for pin in found.pins}
    assert {name: (pin.operation, dict(pin.readings), pin.everywhere) for name, pin in pins.items()} == {
        "GPT": ("causal_lm", NEXT, True),
        "CachedTransformer": ("causal_lm", {}, True),
        "LastTokenLM": ("causal_lm", {}, True),
        "LossAloneLM": ("causal_lm", NEXT, True),
    }
    assert "only with targets" in pins["GPT"].told[0]
    assert "looking ahead cannot be seen" in pins["LastTokenLM"].told[0]
    assert not found.refused


@pytest.mark.whole
def test_faulty_models_are_recognised_as_what_they_are_meant_to_be() -> None:
    ahead = {pin.name: pin.everywhere for pin in found_in("models_faulty").pins}
    assert ahead == {"GPT": False, "CachedTransformer": False, "LastTokenLM": True, "LossAloneLM": False}
    others = {pin.name: pin.everywhere for pin in found_in("models_faulty_cache").pins}
    # A cache shows only where it is judged.
    assert others == {"GPT": False, "CachedTransformer": True, "LastTokenLM": True, "LossAloneLM": True}


def test_a_bound_model_gives_logits_loss_and_cache() -> None:
    models = module_of(form_file("models"))
    ids = torch.arange(10).reshape(2, 5)
    model = bind("models/causal_lm", models.GPT, **NEXT)()
    labels = ids.clone()
    labels[0, 2] = -100
    answer = model(ids[:, :4], labels=labels[:, :4])
    right = torch.nn.functional.cross_entropy(answer.logits[:, :-1].flatten(0, 1), labels[:, 1:4].flatten())
    assert torch.equal(answer.loss, right)
    cached = bind("models/causal_lm", models.CachedTransformer)()
    past = cached(ids[:, :3], use_cache=True).past_key_values
    assert cached(ids[:, 3:], past_key_values=past).logits.shape == (2, 2, 29)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("file", "name", "rows", "wrong"),
    [
        ("models", "GPT", ("causal_lm.prefix", "causal_lm.loss"), set()),
        ("models_faulty", "GPT", ("causal_lm.prefix",), {"causal_lm.prefix"}),
        ("models_faulty_cache", "GPT", ("causal_lm.loss",), {"causal_lm.loss"}),
        ("models_faulty_cache", "CachedTransformer", ("causal_lm.cache_steps",), {"causal_lm.cache_steps"}),
    ],
)
def test_models_are_judged(file: str, name: str, rows: tuple[str, ...], wrong: set[str]) -> None:
    assert failed(file, name, *rows) == wrong


@pytest.mark.whole
def test_optimizers_are_recognised_those_without_a_formula_to_be_judged_by_laws() -> None:
    found = found_in("optimizers")
    assert {pin.name: pin.operation for pin in found.pins} == OPTIMIZERS
    assert all(pin.everywhere for pin in found.pins), found.pins
    assert {pin.operation: pin.deviations for pin in found.pins if pin.deviations} == {"sgd_momentum": ("gradient",)}
    assert not found.refused
    faulty = found_in("optimizers_faulty")
    assert {pin.name: pin.operation for pin in faulty.pins} == OPTIMIZERS
    assert {pin.name for pin in faulty.pins if pin.everywhere} == {"Lion"}


@pytest.mark.whole
@pytest.mark.parametrize("name", ["SGD", "adam_step"])  # the others are told apart above
def test_faulty_optimizers_are_violated(name: str) -> None:
    operation = OPTIMIZERS[name]
    for file, wrong in (("optimizers", set()), ("optimizers_faulty", {operation})):
        thing = getattr(module_of(form_file(file)), name)
        results = check(thing, only=[f"{operation}.equation"], dtype=["fp32"], profile="quick")
        (row,) = (row for row in results.results if row.requirement == f"{operation}.equation")
        assert row.status is (Status.FAIL if wrong else Status.PASS)
        assert {finding.operation for finding in results.findings} == wrong
