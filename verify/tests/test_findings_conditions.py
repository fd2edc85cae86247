"""Conditions and causes from examples that are written down here, without any target."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from veriformer.spec.requirement import Weight
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.findings.assembly import weight
from veriformer.verify.findings.causes import Cause, Search, joined, relevant
from veriformer.verify.findings.condition import Condition, conditions
from veriformer.verify.findings.evidence import Example, Failing, Signature, failing, passing
from veriformer.verify.findings.refused import by_no_rule
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.scripts.script import Recorded

ROWS = {check.requirement.slug: check for check in checks() if check.operation == "attention"}
VALUE = Signature(Failing.VALUE, "result")
RAISED = Signature(Failing.RAISES, "RuntimeError: sizes")
GRADIENT = Signature(Failing.GRADIENT, "gradient of k", ("k",))
FEATURES = ("grouped heads", "a scale of 0", "a softcap", "n_q ≠ n_k", "several heads", "one key", "a mask of rank 2")


def example(*names: str, failed: Signature | None = None, slug: str = "equation", **fields: Any) -> Example:
    row = CheckRun(ROWS[f"attention.{slug}"], fields.pop("dtype", "fp64"))
    return Example(row=row, calls=(frozenset(names),), signature=failed, message="result[0]: observed 1", **fields)


def drawn(count: int, broken: dict[frozenset[str], Signature], seed: int = 0, slug: str = "equation") -> list[Example]:
    """Calls with features by chance, failing where they have all of some."""
    rng = random.Random(seed)
    found = []
    for _ in range(count):
        names = frozenset(name for name in FEATURES if rng.random() < 0.3)
        failed = next((signature for needed, signature in broken.items() if needed <= names), None)
        found.append(example(*names, failed=failed, slug=slug))
    return found


def best(examples: Sequence[Example]) -> tuple[str, ...]:
    return conditions("attention", failing(examples), passing(examples))[0][1].names


@pytest.mark.parametrize("name", ["a scale of 0", "grouped heads"])
def test_the_feature_that_all_failing_calls_have_is_the_condition(name: str) -> None:
    assert best(drawn(60, {frozenset({name}): VALUE})) == (name,)


def test_two_features_that_fail_only_together_are_the_condition() -> None:
    both = frozenset({"grouped heads", "a softcap"})
    assert set(best(drawn(120, {both: VALUE}))) == both


def test_what_fails_on_every_call_has_no_condition() -> None:
    assert best(drawn(60, {frozenset(): VALUE})) == ()


def test_what_fails_on_nearly_every_call_has_none_either() -> None:
    examples = drawn(60, {frozenset(): VALUE})
    assert best([*examples[:52], *(example(*one.calls[0]) for one in examples[52:])]) == ()


def test_what_fails_on_nearly_every_call_but_those_of_one_head_has_that_condition() -> None:
    failing_calls = [example("several heads", *name, failed=VALUE) for name in (("a softcap",), ()) for _ in range(40)]
    assert best([*failing_calls, *(example("a softcap") for _ in range(5)), example()]) == ("several heads",)


def test_that_there_are_several_is_not_said_beside_another_feature() -> None:
    unseeing = [example("a query that sees no key", "several keys", failed=VALUE) for _ in range(20)]
    held = [example("a query that sees no key") for _ in range(8)] + [example("several keys") for _ in range(40)]
    assert best([*unseeing, *held]) == ("a query that sees no key",)


def test_what_judges_the_form_alone_says_nothing_of_values() -> None:
    held = [example(slug=slug) for slug in ("contract", "equation")]
    failed = [example("several heads", failed=VALUE)]
    assert [one.row.check.requirement.slug for one in relevant(held, failed)] == ["attention.equation"]
    assert relevant(held, [example(failed=RAISED)]) == held


def test_features_of_different_calls_are_no_condition_on_one() -> None:
    apart = Example(row=example().row, calls=(frozenset({"a softcap"}), frozenset({"one key"})))
    assert not Condition("attention", ("a softcap", "one key")).met(apart.calls)
    assert Condition("attention", ("a softcap",)).met(apart.calls)


def causes(examples: Sequence[Example], broken: dict[frozenset[str], Signature]) -> list[Cause]:
    """The causes, with experiments on what is truly broken."""
    turns = iter(range(1, 1000))

    def again(row: CheckRun, without: Sequence[Condition]) -> list[Example]:
        fresh = drawn(40, broken, next(turns), row.check.requirement.slug.partition(".")[2])
        return [one for one in fresh if not any(condition.met(one.calls) for condition in without)]

    return joined(Search("attention", examples, again).run())


def test_two_causes_are_told_apart() -> None:
    broken = {frozenset({"grouped heads"}): RAISED, frozenset({"a scale of 0"}): VALUE}
    found = causes(drawn(120, broken), broken)
    assert {cause.condition.names for cause in found} == {("grouped heads",), ("a scale of 0",)}
    assert all(cause.confirmed for cause in found)


def test_what_raises_under_a_narrower_condition_is_a_cause_of_its_own() -> None:
    broken = {frozenset({"several heads", "a softcap"}): RAISED, frozenset({"several heads"}): VALUE}
    found = {cause.condition.names: cause.signature for cause in causes(drawn(300, broken), broken)}
    assert found.pop(("several heads",)) == VALUE
    assert list(found.values()) == [RAISED]


def test_what_raises_or_is_wrong_under_one_condition_is_one_cause() -> None:
    broken = {frozenset({"several heads"}): VALUE}
    examples = drawn(200, broken)
    turned = [replace(one, signature=RAISED) if one.failed and i % 2 else one for i, one in enumerate(examples)]
    (found,) = causes(turned, broken)
    assert found.condition.names == ("several heads",)


def test_a_cause_that_lay_hidden_under_another_is_found_by_experiment() -> None:
    broken = {frozenset({"several heads"}): RAISED, frozenset({"a scale of 0"}): VALUE}
    evidence = [one for one in drawn(300, broken) if "a scale of 0" not in one.calls[0] or one.signature == RAISED]
    assert VALUE not in {one.signature for one in evidence}
    assert {cause.condition.names for cause in causes(evidence, broken)} == {("several heads",), ("a scale of 0",)}


@pytest.mark.parametrize("gradients", [("k",), ("v",)])
def test_nan_that_a_law_about_hidden_values_meets_is_no_leak_where_calls_give_it_by_themselves(
    gradients: tuple[str, ...],
) -> None:
    """The law is about the same gradient, or about another that no call gives NaN for by itself."""
    lost = Signature(Failing.NOT_FINITE, "gradient of k", ("k",))
    law = Signature(Failing.NOT_FINITE, "gradient of the part alone", gradients)
    broken = {frozenset({"a scale of 0"}): lost}
    examples = [replace(one, gradients=frozenset("kv")) for one in drawn(200, broken)]
    examples += [example("a scale of 0", failed=law, slug="batch", gradients=frozenset("kv")) for _ in range(3)]
    examples += [example("a scale of 0", slug="batch", gradients=frozenset("kv")) for _ in range(20)]
    found = causes(examples, broken)
    assert found[0].condition.names == ("a scale of 0",)
    assert len(found) == (1 if gradients == ("k",) else 2)


def test_a_condition_that_only_looked_like_one_is_refuted() -> None:
    """Every failing call happened to have a soft cap and no other had; with none, calls fail as before."""
    broken = {frozenset({"a scale of 0"}): VALUE}
    evidence = [one for one in drawn(300, broken) if one.failed == ("a softcap" in one.calls[0])]
    assert best(evidence) == ("a softcap",)
    assert [cause.condition.names for cause in causes(evidence, broken)] == [("a scale of 0",)]


def test_laws_of_a_gradient_that_is_always_wrong_are_its_echo() -> None:
    asked = {"gradients": frozenset("qkv")}
    law = Signature(Failing.GRADIENT, "sum of k dk", ("k",))
    examples = [example("gradients", failed=GRADIENT, slug="gradient", **asked) for _ in range(20)]
    examples += [example("gradients", failed=law, slug="scale_balance", **asked) for _ in range(20)]
    (found,) = causes(examples, {})
    assert found.signature == GRADIENT
    assert {row.check.requirement.slug for row in found.rows} == {"attention.gradient", "attention.scale_balance"}


def test_a_law_that_fails_while_the_equation_holds_is_a_cause_of_its_own() -> None:
    examples = drawn(40, {}) + [example("several heads", failed=VALUE, slug="permutation") for _ in range(10)]
    (found,) = causes(examples, {})
    assert found.condition.requirement == "attention.permutation"


def weighed(condition: Condition, *slugs: str) -> Weight:
    return weight(Cause(condition, tuple(example(failed=VALUE, slug=slug) for slug in slugs)))


def test_a_degenerate_condition_caps_the_weight_and_a_leak_stays_one() -> None:
    assert weighed(Condition("attention"), "equation", "range") is Weight.WRONG
    assert weighed(Condition("attention", ("grouped heads",)), "equation") is Weight.WRONG
    assert weighed(Condition("attention", ("a scale of 0",)), "equation") is Weight.FRAGILE
    assert weighed(Condition("attention", ("NaN in a hidden value",)), "hidden_poison") is Weight.LEAK
    assert weighed(Condition("attention", ("NaN in a hidden value",)), "accuracy") is Weight.IMPRECISE


def test_a_condition_does_not_name_what_most_calls_have_anyway() -> None:
    rng = random.Random(0)
    examples = []
    for _ in range(200):
        unseen, odd = rng.random() < 0.3, rng.random() < 0.7
        names = ["a query that sees no key"] * unseen + ["n_k no multiple of 16"] * odd
        examples.append(example(*names, failed=VALUE if unseen and odd else None))
    assert best(examples) == ("a query that sees no key",)


def test_a_condition_reads_as_the_end_of_a_sentence() -> None:
    def words(*names: str) -> str | None:
        return Condition("attention", names).words

    assert words() is None
    assert words("a softcap", "grouped heads") == "with a softcap and grouped heads"
    assert words("a softcap", "n_q ≠ n_k") == "with a softcap, where n_q ≠ n_k"
    assert words("a last axis of q above 128") == "where the last axis of q is longer than 128"
    assert words("n_k no multiple of 16") == "where n_k is no multiple of 16"


def test_a_feature_under_which_ordinary_calls_hold_is_no_condition() -> None:
    """Laws that draw nothing but masks fail, and ordinary calls with a mask hold: not the mask is what is wrong."""
    slugs = ("low_scores", "hidden_scores", "empty_row") * 4
    laws = [example("a mask", failed=VALUE, slug=slug) for slug in slugs]
    examples = [*drawn(40, {}), *laws]
    assert best([*examples, *(example("a mask") for _ in range(2))]) == ("a mask",)
    held = [*examples, *(example("a mask") for _ in range(3))]
    assert ("a mask",) not in {one.names for _, one in conditions("attention", failing(held), passing(held))}


def test_an_exception_that_some_calls_raise_is_one_whatever_tells_some_of_them_apart() -> None:
    raised = example(failed=RAISED)
    some = Cause(Condition("attention"), (raised, raised), share=0.3)
    chance = Cause(Condition("attention", ("one key",)), (raised,), confirmed=True, share=0.7)
    other = Cause(Condition("attention", ("a softcap",)), (example(failed=Signature(Failing.RAISES, "KeyError: v")),))
    one, another = joined([chance, other, some])
    assert one.condition.always
    assert len(one.explained) == 3
    assert another is other
    assert joined([chance, other]) == [chance, other]


def sized(*lengths: int, failed: Signature | None = None) -> list[Example]:
    return [
        example(failed=failed, recorded=(Recorded("got", "attention", ("q",), {"q": torch.zeros(2, n, 3)}),))
        for n in lengths
    ]


@pytest.mark.parametrize(
    ("condition", "share", "refused", "answered", "unruly"),
    [
        (Condition("attention"), 0.2, (3, 9, 5), (4, 7, 8, 2), True),
        (Condition("attention"), 0.2, (13, 19, 15), (4, 7, 8, 2), False),
        (Condition("attention"), 0.2, (1, 2, 1), (4, 7, 8, 3), False),
        (Condition("attention"), 0.8, (3, 9, 5), (4, 7, 8, 2), False),
        (Condition("attention", ("one key",)), 0.7, (3, 9, 5), (4, 7, 8, 2), True),
        (Condition("attention", ("one key",)), 1.0, (3, 9, 5), (4, 7, 8, 2), False),
        (Condition("attention", requirement="attention.long"), 0.2, (3, 9, 5), (4, 7, 8, 2), False),
    ],
    ids=["some calls", "long ones", "short ones", "most calls", "some with a feature", "all with it", "a law"],
)
def test_an_exception_follows_a_rule_or_none(
    condition: Condition, share: float, refused: tuple[int, ...], answered: tuple[int, ...], unruly: bool
) -> None:
    failed = sized(*refused, failed=RAISED)
    cause = Cause(condition, tuple(failed), share=share)
    assert by_no_rule(cause, [*failed, *sized(*answered)]) is unruly
    wrong = tuple(replace(one, signature=VALUE) for one in failed)
    assert not by_no_rule(replace(cause, explained=wrong), [*failed, *sized(*answered)])
