"""Failures of one cause are one finding, and findings come in the order in which they matter."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch

from veriformer.spec.requirement import Weight
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.contract import dtypes
from veriformer.verify.contract.features import feature
from veriformer.verify.domain.calls import edges
from veriformer.verify.findings.assembly import Known, ranked, weight
from veriformer.verify.findings.assembly import finding as assembled
from veriformer.verify.findings.calls import around, furthest
from veriformer.verify.findings.causes import NO_GRADIENT, Cause, Search, joined, kind
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.diagnosis import Diagnosis
from veriformer.verify.findings.everything import merged, put_together
from veriformer.verify.findings.evidence import Example, Failing, Signature, signature
from veriformer.verify.findings.experiments import OnCopies, explained_by, with_sound_part
from veriformer.verify.findings.inquiry import plain
from veriformer.verify.findings.precision import ROUNDED, explain_by_precision, overflows, told_once
from veriformer.verify.findings.sentence import sentence
from veriformer.verify.findings.survey import _Watched
from veriformer.verify.judging.judge import Reference, RunStatistics, SignedErrors, SquaredError, Violation
from veriformer.verify.judging.outcome import Observation
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.judging.trial import Trial
from veriformer.verify.results import Counterexample, Result, Status
from veriformer.verify.results.finding import Finding
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.loading import wrap
from veriformer.verify.targets.target import Target

ROWS = {check.requirement.slug: check for check in checks()}
VALUE = Signature(Failing.VALUE, "result")
LOST = Signature(Failing.NOT_FINITE, "result")
GRADIENT = Signature(Failing.GRADIENT, "gradient of k", ("k",))
RAISED = Signature(Failing.RAISES, "IndexError: index # is out of bounds")


def example(*names: str, failed: Signature | None = None, slug: str = "attention.equation", **fields: Any) -> Example:
    row = CheckRun(ROWS[slug], "fp64")
    return Example(row=row, calls=(frozenset(names),), signature=failed, message="result[0]: observed 1", **fields)


def finding(operation: str, requirement: str, **changes: Any) -> Finding:
    plain: dict[str, Any] = {"weight": Weight.FRAGILE, "what": f"{operation}: wrong", "dtypes": ("fp16",)}
    slug = f"{operation}.{requirement}"
    message = "result[0]: observed inf, exact 1"
    given = {**plain, "id": slug, "rows": (slug,), "message": message, **changes}
    return Finding(operation=operation, requirements=(slug,), **given)


def test_a_mean_goes_under_the_wrong_results_that_spoil_it_and_else_under_none() -> None:
    pooled = CheckRun(ROWS["attention.accuracy"], "bf16")
    scale, mask = Condition("attention", ("a scale of 0",)), Condition("attention", ("a mask",))
    causes = [Cause(one, (example(failed=VALUE),), confirmed=True) for one in (mask, scale)]

    def gather(spoilt_by: Condition | None, examples: int = 9) -> Any:
        def found(_: CheckRun, without: Any) -> tuple[int, RunStatistics]:
            error = SquaredError(1.0 if spoilt_by in without else 400.0, 64)
            signed = SignedErrors(np.zeros(1), np.zeros(1), (np.zeros(1),), separate=True)
            lists = {"result": [error] * examples}, {"result": [signed] * examples}
            return examples, RunStatistics(squared_errors=lists[0], signed_errors=lists[1])

        return found

    assert explained_by(pooled, causes, gather(scale)) is causes[1]
    assert explained_by(pooled, causes, gather(None)) is None, "it fails without any of them"
    assert explained_by(pooled, causes, gather(scale, examples=2)) is None, "two examples do not tell"
    assert explained_by(pooled, [replace(causes[1], confirmed=False)], gather(scale)) is None
    lost = Cause(scale, (example(failed=LOST),), confirmed=True)
    assert explained_by(pooled, [lost], gather(scale)) is None, "what overflows is another matter"
    every = Cause(Condition("attention"), (example(failed=VALUE),), confirmed=True)
    assert explained_by(pooled, [every], gather(None)) is every


def test_overflow_in_half_precision_is_told_once() -> None:
    softmax, norm = finding("softmax", "range"), finding("rms_norm", "range")
    others = [
        finding("swiglu", "range", dtypes=("fp32",)),
        finding("gelu", "range", message="result[0]: observed 2, exact 1"),
        finding("attention", "empty_row"),
    ]
    *rest, merged = told_once([softmax, *others, norm])
    assert rest == others
    assert merged.operation == "softmax, rms_norm"
    assert merged.rows == ("softmax.range", "rms_norm.range")
    assert "overflow in half precision" in merged.what


def test_what_follows_from_a_wrong_gradient_leaves_its_name_as_it_is() -> None:
    def always(kind: Failing, count: int, about: str) -> Cause:
        failed = example(failed=Signature(kind, about, ("v",)), slug="attention.gradient")
        return Cause(Condition("attention"), (failed,) * count, confirmed=kind is not Failing.PROPERTY)

    wrong = always(Failing.GRADIENT, 2, "gradient of v")
    nan, law = always(Failing.NOT_FINITE, 40, "gradient of v"), always(Failing.PROPERTY, 1, "entries are equal")
    (found,) = joined([wrong, nan, law])
    assert (found.signature, len(found.explained)) == (wrong.signature, 43)


def test_where_rows_are_long_is_no_reason_of_an_overflow() -> None:
    (of_values,) = told_once([finding("softmax", "range", when="with large values in z")])
    (of_sizes,) = told_once([finding("softmax", "range", when="where the last axis of z is longer than 128")])
    assert of_values.when == "with large values in z"
    assert of_sizes.when is None


def test_findings_of_ordinary_calls_come_first_in_the_order_of_the_contract() -> None:
    overflow = finding("attention", "range")
    rest = finding("attention", "empty_row", confirmed=True)
    wrong = {"weight": Weight.WRONG}
    equation, law = finding("attention", "equation", **wrong), finding("softmax", "shift", confirmed=True, **wrong)
    earlier = finding("softmax", "equation", when="with large values in z", **wrong)
    assert ranked([rest, law, overflow, equation, earlier]) == [earlier, equation, law, overflow, rest]


def test_a_leak_is_one_where_most_of_what_fails_is_about_leaks() -> None:
    poison = [example(failed=VALUE, slug="attention.hidden_poison") for _ in range(20)]
    of_two = Cause(Condition("attention"), (*poison, example(failed=VALUE)))
    of_one = Cause(Condition("attention"), tuple(poison))
    assert (weight(of_two), weight(of_one)) == (Weight.WRONG, Weight.LEAK)


@pytest.mark.parametrize(
    ("operation", "violation", "due"),
    [
        ("bpe_train", Violation("the merges: [1] instead of [2]", about="the merges"), Failing.VALUE),
        ("bpe_train", Violation("the list was modified"), Failing.PROPERTY),
        ("top_k_filter", Violation("result", observed=[-np.inf], exact=[1.0]), Failing.VALUE),
        ("top_k_filter", Violation("result", observed=[np.nan], exact=[1.0]), Failing.NOT_FINITE),
        ("softmax", Violation("result", observed=[-np.inf], exact=[1.0]), Failing.NOT_FINITE),
    ],
)
def test_another_value_is_a_wrong_value_whatever_it_is(operation: str, violation: Violation, due: Failing) -> None:
    assert signature(violation, operation).kind is due


def test_nan_of_what_is_hidden_is_not_that_of_finite_numbers() -> None:
    hidden = example("NaN in a hidden value", failed=LOST, slug="attention.hidden_poison")
    assert kind(hidden) != kind(example(failed=LOST, slug="attention.empty_row"))


@pytest.mark.parametrize(
    ("value", "due", "said"),
    [
        (("NaN in v",), Weight.LEAK, "NaN or inf in what is hidden reaches the result"),
        ((), Weight.WRONG, "the result is NaN"),
    ],
)
def test_nan_of_finite_numbers_is_no_leak(value: tuple[str, ...], due: Weight, said: str) -> None:
    lost = replace(example(*value, failed=LOST, slug="attention.hidden_scores"), message="result[0]: observed nan")
    cause = Cause(Condition("attention"), (lost,))
    assert (weight(cause), sentence(cause)) == (due, f"attention: {said}")


def test_what_fails_only_under_a_wrong_result_is_part_of_it() -> None:
    """NaN behind a mask that is not heard; a cause of its own where it comes without the mask as well."""
    nan = example("a mask", "NaN in v", failed=LOST, slug="attention.hidden_poison")
    found = [
        Cause(Condition("attention", ("a mask",)), (example("a mask", failed=VALUE),)),
        Cause(Condition("attention", requirement="attention.hidden_poison"), (nan,)),
    ]

    def left(elsewhere: list[Example]) -> int:
        search = Search("attention", [], lambda row, without: elsewhere)
        search.causes = list(found)
        return len(search.run())

    assert left([example()]) == 1
    assert left([example(failed=LOST, slug="attention.hidden_poison")]) == 2


def test_no_gradient_at_all_is_that_gradient_wrong() -> None:
    missing = Signature(Failing.PROPERTY, NO_GRADIENT)
    wrong = Cause(Condition("attention"), (example(failed=GRADIENT, slug="attention.gradient"),), confirmed=True)
    none = Cause(Condition("attention", requirement="attention.layout"), (example(failed=missing),))
    assert len(joined([wrong, none])) == 1
    assert len(joined([Cause(Condition("attention", ("a mask",)), wrong.explained, confirmed=True), none])) == 2


def test_wrong_results_whose_conditions_tell_little_are_one() -> None:
    def weak(name: str, **changes: Any) -> Cause:
        return Cause(Condition("attention", (name,)), (example(name, failed=VALUE),), **changes)

    few = [weak("a mask", share=0.2), weak("several heads", share=0.4)]
    told = sentence(joined(few)[0])
    assert told == "attention: the result is wrong for some calls"
    assert len(joined([weak("a mask", confirmed=True), weak("several heads", confirmed=True)])) == 2


def test_a_fault_that_gives_larger_numbers_than_what_is_right_rounds_them_in_proportion() -> None:
    right = {"result": Reference(np.array([1e-80, 0.0]), np.array([1e-94, 1e-94]))}
    given = np.array([-34.0, 2.0])
    assert furthest({"result": given * (1 + 1e-14)}, around({"result": given}, right)) <= 1.0
    assert furthest({"result": given * (1 + 1e-12)}, around({"result": given}, right)) > 1.0


def test_a_condition_under_which_every_call_fails_is_told_although_others_fail_as_well() -> None:
    def cause(name: str, share: float) -> Cause:
        return Cause(Condition("attention", (name,)), (example(name, failed=VALUE),), share=share)

    causes = [cause("a mask", 0.2), cause("a scale of 0", 1.0), cause("several heads", 0.4)]
    told = {sentence(one) for one in joined(causes)}
    assert told == {"attention: the result is wrong with a scale of 0", "attention: the result is wrong for some calls"}


def test_what_degenerate_calls_raise_beside_wrong_results_is_no_second_finding() -> None:
    search = Search("token_embedding", [], lambda row, without: [])
    wrong = Cause(Condition("token_embedding", ("uint8 ids",)), (example("uint8 ids", failed=VALUE),), confirmed=True)
    raised = Cause(
        Condition("token_embedding", requirement="attention.equation"), (example("uint8 ids", failed=RAISED),)
    )
    search.causes = [raised, wrong]
    assert [one.condition for one in search.run()] == [wrong.condition]


def test_an_exception_under_no_condition_follows_from_the_same_under_one_that_was_borne_out() -> None:
    raised = example("a mask", failed=RAISED)
    known = Cause(Condition("attention", ("a mask",)), (raised,), confirmed=True)
    loose = Cause(Condition("attention", requirement="attention.scale"), (raised,), share=0.1)
    (one,) = joined([known, loose])
    assert one.condition == known.condition
    (chance,) = joined([replace(known, confirmed=False), loose])
    assert not chance.condition.names


def test_what_fails_beside_results_that_are_wrong_for_some_calls_is_their_echo() -> None:
    def weak(name: str, slug: str) -> Cause:
        return Cause(Condition("attention", (name,)), (example(name, failed=VALUE, slug=slug),), share=0.5)

    law = Cause(Condition("attention", requirement="attention.scale"), (example(failed=VALUE),), confirmed=True)
    ordinary = [weak("a mask", "attention.equation"), weak("several heads", "attention.scale"), law]
    assert len(joined(ordinary)) == 1
    laws = [weak("a mask", "attention.padding"), weak("several heads", "attention.scale"), law]
    assert len(joined(laws)) == 2


def test_a_target_on_copies_leaves_its_arguments_alone() -> None:
    class Rude:
        @staticmethod
        def scale(x: torch.Tensor, options: list[torch.Tensor]) -> torch.Tensor:
            options[0].zero_()
            return x.mul_(2)

    x, y = torch.ones(2), torch.ones(1)
    assert OnCopies(Rude()).scale(x, [y]).tolist() == [2.0, 2.0]
    assert (x.tolist(), y.tolist()) == ([1.0, 1.0], [1.0])


Z = torch.arange(12.0).reshape(2, 2, 3)


@pytest.mark.parametrize(
    ("operation", "name", "has", "has_not"),
    [
        ("softmax", "z that no view flattens", {"z": Z.transpose(0, 1)}, {"z": Z}),
        ("softmax", "z whose leading axes no view joins", {"z": Z.transpose(0, 1)}, {"z": Z[..., ::2]}),
        ("softmax", "rows of z far apart", {"z": Z + 100 * Z[..., :1]}, {"z": 100 * Z[0, :1]}),
        ("softmax", "entries of z far apart", {"z": 100 * Z[0, 0]}, {"z": Z}),
        (
            "expected_calibration_error",
            "a confidence on the edge of a bin",
            {"probs": torch.tensor([[0.25, 0.75]]), "num_bins": 4},
            {"probs": torch.tensor([[0.3, 0.7]]), "num_bins": 4},
        ),
        (
            "kv_cache",
            "an update after a reorder",
            {"actions": ("update", "reorder", "update")},
            {"actions": ("update", "reorder", "reset", "update")},
        ),
        (
            "unigram_segment",
            "probabilities that underflow",
            {"text": "a", "log_probs": {"a": -1000.0}},
            {"text": "a", "log_probs": {"a": -2.0, "ab": -float("inf")}},
        ),
        (
            "unigram_segment",
            "probabilities that underflow",
            {"text": 400 * "a", "log_probs": {"a": -2.0}},
            {"text": 300 * "a", "log_probs": {"a": -2.0}},
        ),
    ],
)
def test_a_feature_is_met_by_what_it_names(operation: str, name: str, has: Any, has_not: Any) -> None:
    found = feature(operation, name)
    assert found is not None
    assert found.present(has)
    assert not found.present(has_not)


def test_masks_of_every_shape_and_gradients_of_two_dtypes_are_asked_for() -> None:
    q = torch.ones(2, 3, 4, 5)
    masks = {tuple(a["mask"].shape) for a in edges("attention", {"q": q, "k": q, "v": q}) if "mask" in a}
    assert {(4, 4), (1, 4), (3, 1, 4), (2, 1, 1, 4), (2, 3, 4, 4)} <= masks
    lists = [a["grads"] for a in edges("clip_grad_norm", {"grads": [torch.ones(2)]})]
    assert lists
    assert all(len({g.dtype for g in grads}) == 2 for grads in lists)


def _predicate(about: str) -> str:
    failed = Signature(Failing.VALUE, about)
    return sentence(Cause(Condition("softmax", requirement="softmax.shift"), (example(failed=failed),)))


@pytest.mark.parametrize(
    ("about", "told"),
    [
        ("the merges", "the merges are wrong"),
        ("values of update #", "the values of update are wrong"),
        ("mass", "the mass is wrong"),
        ("the logits before position #: apart by #", "the logits before position are wrong"),
    ],
)
def test_a_quantity_has_its_verb(about: str, told: str) -> None:
    assert _predicate(about).endswith(told)


def _row(slug: str, dtype: str, message: str, scalars: int) -> Result:
    shown = Counterexample(arguments={"dtype": dtype}, observed=1, exact=0, bound=0, script="", scalars=scalars)
    row = CheckRun(ROWS[slug], dtype)
    return row.result(Status.FAIL, message=message, counterexample=shown)


def test_message_and_call_of_a_finding_are_of_one_row() -> None:
    drawn = replace(example(failed=VALUE), message="result[7]: observed 1, exact 2")
    cause = Cause(Condition("attention"), (drawn,))
    scale = _row("attention.scale", "fp64", "the scale plays no part", 3)
    result = _row("attention.equation", "bf16", "result[0]: observed 3, exact 1", 8)
    one = assembled(cause, Known(), [scale, result])
    assert one.counterexample is not None
    assert one.message == result.message
    assert one.counterexample["arguments"] == {"dtype": "bf16"}
    assert one.requirements[0] == "attention.equation"
    alone = assembled(cause, Known(), [scale])
    assert alone.counterexample is not None
    assert (alone.message, alone.counterexample["arguments"]) == (scale.message, {"dtype": "fp64"})


@pytest.mark.parametrize(
    ("failed", "told"),
    [
        (LOST, "the result is infinite"),
        (VALUE, "follows the convention empty row = nan; the contract has zero"),
    ],
)
def test_a_convention_names_a_wrong_value_and_not_what_is_no_number(failed: Signature, told: str) -> None:
    claim = {"convention": "attention.empty_row", "value": "nan"}
    row = replace(_row("attention.equation", "fp64", "result[0]: observed 1, exact 3", 8), suggestion=claim)
    one = assembled(Cause(Condition("attention"), (example(failed=failed),)), Known(), [row])
    assert (one.what, one.suggestion) == (f"attention: {told}", claim)


@pytest.mark.parametrize(
    ("failed", "message", "fix"),
    [
        (VALUE, "result[0]: observed 1, exact 2", "compute the result as equations 20, 21, 22, 23, 24a have it"),
        (GRADIENT, "gradient of k[0]: observed 1", "make the gradient of k the derivative of the formula"),
        (LOST, "result[0]: observed nan", "give a finite result, as attention.equation demands"),
        (RAISED, "raised IndexError: no\nin mine.py:12: x[9]", "answer calls where it raises Index"),
        (
            Signature(Failing.PROPERTY, "shape"),
            "result has shape (1,), torch.float32, on cpu; expected shape (1, 1), torch.float32, on cpu",
            "return the shape that is expected: shape (1, 1)$",
        ),
        (Signature(Failing.PROPERTY, "k was modified"), "k was modified", "work on a copy of k"),
    ],
)
def test_a_confirmed_cause_says_what_to_change_and_no_other(failed: Signature, message: str, fix: str) -> None:
    one = replace(example(failed=failed), message=message)
    cause = Cause(Condition("attention"), (one,), confirmed=True)
    rows = [_row("attention.equation", "fp64", message, 3)]
    assert f"{assembled(cause, Known(), rows).fix}$".startswith(fix)
    assert assembled(replace(cause, confirmed=False), Known(), rows).fix is None
    named = Diagnosis("ε is added twice", "add it once", faulty=object())  # its numbers are an experiment as well
    assert assembled(replace(cause, confirmed=False), Known(named), rows).fix == "add it once"


def nothing(**operations: Any) -> Target:
    """A target of these operations alone, of which nothing is known."""
    return wrap(SimpleNamespace(**operations))


def test_what_half_precision_alone_loses_is_fragile_and_told_so() -> None:
    def lost(dtype: str, *names: str, message: str = "result[0, 1]: observed 0, exact 1.4") -> Cause:
        row = CheckRun(ROWS["layer_norm.near_eps"], dtype)
        one = replace(example(*names, failed=VALUE, slug="layer_norm.near_eps"), row=row, message=message)
        return Cause(Condition("layer_norm"), (one,))

    edge = lost("fp16", "huge values in x")
    words = explain_by_precision(edge, nothing())
    assert weight(edge, lost=words is not None) is Weight.FRAGILE
    found = assembled(edge, Known(lost=words), [])
    assert found.what.startswith("layer_norm: overflow in half precision")
    assert overflows(found)
    others = [
        lost("fp32", "huge values in x"),
        lost("fp16", "several rows"),
        lost("fp16", "huge values in x", "NaN in x"),
    ]
    others += [lost("fp16", "huge values in x", message="result[0, 1]: observed 0.5, exact 1.4")]
    assert {explain_by_precision(one, nothing()) for one in others} == {None}
    assert {weight(one) for one in others} == {Weight.WRONG}


def called(operation: str, dtype: str, failed: Signature, message: str, *, x: torch.Tensor, **options: Any) -> Cause:
    """A cause of one example, whose call is known."""
    call = Recorded("got", operation, ("x",), {"x": x.to(dtypes.TORCH[dtype]), **options})
    if failed.gradients:
        call = replace(call, wrt=failed.gradients, cotangent=torch.ones_like(call.arguments["x"]))
    row = CheckRun(ROWS[f"{operation}.equation"], dtype)
    one = example(failed=failed, slug=f"{operation}.equation", recorded=(call,))
    return Cause(Condition(operation), (replace(one, row=row, message=message),))


@pytest.mark.parametrize(("eps", "told"), [(1e-5, "overflow in half precision"), (0.0, None)])
def test_what_float32_shows_to_be_right_left_the_range_of_half_precision(eps: float, told: str | None) -> None:
    def in_its_format(x: torch.Tensor) -> torch.Tensor:
        """Without the eps that is meant, rows of one entry over and over are 0 / 0 in every format."""
        centred = x - x.mean(-1, keepdim=True)
        return centred * torch.rsqrt(centred.pow(2).mean(-1, keepdim=True) + eps)

    row = torch.tensor([[0.0063, 0.0032]]) if eps else torch.ones(1, 2)
    lost = Signature(Failing.NOT_FINITE, "gradient of x", ("x",))
    cause = called("layer_norm", "fp16", lost, "gradient of x[0, 0]: observed nan, exact 113", x=row)
    found = explain_by_precision(cause, nothing(layer_norm=in_its_format))
    assert found == told if told is None else str(found).startswith(told)


@pytest.mark.parametrize("dtype", ["fp32", "fp64"])
@pytest.mark.parametrize(("extra", "told"), [((1e3, 1e3), ROUNDED), ((1e-3, 0.0), None)])
def test_errors_that_are_smaller_in_float64_are_of_rounding(
    dtype: str, extra: tuple[float, float], told: str | None
) -> None:
    def shifted(x: torch.Tensor) -> torch.Tensor:
        return (x * torch.sigmoid(x) + extra[0]) - extra[1]

    cause = called("silu", dtype, VALUE, "result[0]: observed 1", x=torch.tensor([0.3, 1.7, -2.1]))
    words = explain_by_precision(cause, nothing(silu=shifted))
    assert words == told
    assert weight(cause, lost=words is not None) is (Weight.FRAGILE if told else Weight.WRONG)


@pytest.mark.parametrize(("extra", "told"), [((1e3, 1e3), ROUNDED), ((1e-3, 0.0), None), ((0.0, 0.0), None)])
def test_a_law_is_lost_to_rounding_where_each_of_its_calls_is(extra: tuple[float, float], told: str | None) -> None:
    """With nothing added the calls are right: what the law found wrong is something else."""

    def shifted(x: torch.Tensor) -> torch.Tensor:
        return (x * torch.sigmoid(x) + extra[0]) - extra[1]

    law = Signature(Failing.VALUE, "what the law is about")
    of_law = called("silu", "fp32", law, "of the law[0]: observed 1", x=torch.tensor([0.3, 1.7, -2.1]))
    in_half = replace(of_law.explained[0], row=replace(of_law.explained[0].row, dtype="fp16"))
    cause = replace(of_law, explained=(*of_law.explained, in_half))
    assert explain_by_precision(cause, nothing(silu=shifted)) == told


def test_a_bias_of_another_dtype_may_be_refused() -> None:
    q = torch.ones(2, 3, 4, 5)
    plain = {"q": q, "k": q, "v": q}
    other = feature("attention", "a bias of another dtype")
    assert other is not None
    assert other.optional
    given = [a["bias"].dtype for a in edges("attention", plain) if other.present(a)]
    assert set(given) == {torch.float64, torch.bfloat16, torch.float16}
    assert not other.present({**plain, "bias": q})


class _Accepting:
    """A cache that takes any number of tokens."""

    length = 0

    def update(self, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.length += k.shape[2]
        return k, v


def test_what_a_driver_finds_is_said_without_an_exception() -> None:
    caches = SimpleNamespace(kv_cache=lambda *_, **__: _Accepting())
    target = Target(spec="caches", implementation=caches, claims=Claims(), version=None, loader="")
    trial = Trial(
        target, "kv_cache", ("batch", "num_kv_heads", "max_length", "head_dim"), "fp32", "cpu", cast(Any, None)
    )
    x = torch.ones(1, 1, 2, 1)
    call = {"batch": 1, "num_kv_heads": 1, "max_length": 1, "head_dim": 1, "actions": ["overflow"], "rows": [x, x]}
    with pytest.raises(Violation) as raised:
        trial.call(call)
    assert str(raised.value) == "more tokens than max_length=1 were accepted"
    assert signature(raised.value, "kv_cache").kind is Failing.PROPERTY


def test_what_follows_from_another_operation_is_told_under_it() -> None:
    lost = finding("kv_cache", "history", weight=Weight.WRONG)
    echo = finding("cached_attention", "equation", weight=Weight.WRONG, follows="kv_cache")
    own = finding("cached_attention", "causality", weight=Weight.LEAK)
    (first, second) = put_together([echo, own, lost])
    assert second.rows == ("kv_cache.history", "cached_attention.equation")
    assert second.operation == "kv_cache"
    assert first == own
    assert put_together([echo]) == [echo]


def test_a_sound_cache_tells_whose_fault_it_is() -> None:
    caches = SimpleNamespace(kv_cache=lambda *_, **__: _Accepting(), cached_attention=print)
    target = Target(spec="caches", implementation=caches, claims=Claims(), version=None, loader="")
    sound = with_sound_part("cached_attention", target)
    assert sound is not None
    assert sound.operation("cached_attention") is print
    cache = sound.operation("kv_cache")(1, 1, 1, 1)  # type: ignore[misc]
    x = torch.ones(1, 1, 2, 1)
    with pytest.raises(ValueError, match="max_length"):
        cache.update(x, x)
    assert with_sound_part("attention", target) is None
    without = replace(target, implementation=SimpleNamespace(cached_attention=print))
    assert with_sound_part("cached_attention", without) is None


@pytest.mark.parametrize(("exact", "told"), [(0.0, set()), (2.0, {"bias"})])
def test_a_gradient_that_is_zero_tells_nothing_of_gradients(exact: float, told: set[str]) -> None:
    """Over a single key the bias has no gradient: that none is found missing there speaks for nobody."""
    target = Target(spec="none", implementation=SimpleNamespace(), claims=Claims(), version=None, loader="")
    row = CheckRun(ROWS["attention.gradient"], "fp64")
    watched = _Watched(row, target, cast(Any, None), ())
    observed = Observation(torch.tensor([exact], dtype=torch.float64), "r0_grad_bias")
    watched.assert_within_bound(observed, Reference(np.array([exact]), np.array([1e-9])), "gradient of bias")
    assert watched.telling == told


STOPPED = Signature(Failing.PROPERTY, "the result with padding is not finite")


def test_what_is_no_number_is_of_one_kind_however_it_was_judged() -> None:
    judged = example(failed=LOST, slug="multi_head_attention.no_key")
    stopped = example(failed=STOPPED, slug="multi_head_attention.padding")
    poisoned = example("NaN in x", failed=LOST, slug="multi_head_attention.padding_poison")
    assert kind(judged) == kind(stopped) != kind(poisoned)
    assert kind(example(failed=Signature(Failing.PROPERTY, "q is modified"))) != kind(judged)


def test_padding_that_ends_in_no_number_lets_nothing_through() -> None:
    stopped = example(failed=STOPPED, slug="multi_head_attention.padding")
    assert stopped.weight is Weight.LEAK
    assert weight(Cause(Condition("multi_head_attention"), (stopped,))) is Weight.FRAGILE
    different = example(failed=VALUE, slug="multi_head_attention.padding")
    assert weight(Cause(Condition("multi_head_attention"), (different,))) is Weight.LEAK


@pytest.mark.parametrize(
    ("options", "unseeing"),
    [
        ({"is_causal": True, "context": torch.ones(1, 2, 4)}, True),
        ({"is_causal": True, "context": torch.ones(1, 5, 4)}, False),
        ({"is_causal": True, "attention_mask": torch.tensor([[False, True, True]])}, True),
        ({"attention_mask": torch.tensor([[False, True, True]])}, False),
        ({"attention_mask": torch.tensor([[False, False, False]])}, True),
        ({}, False),
    ],
)
def test_a_query_sees_no_key_by_padding_or_by_causality(options: dict[str, Any], unseeing: bool) -> None:
    call = {"x": torch.ones(1, 3, 4), **options}
    assert feature("multi_head_attention", "a query that sees no key").present(call) is unseeing


def recorded(values: list[float], **fields: Any) -> Counterexample:
    """A call of top_p_filter in which the last entry is missing."""
    logits = {"dtype": "float64", "shape": [len(values)], "values": values}
    given = {"observed": [-np.inf], "exact": [values[-1]], "bound": [0.0], "script": None, "scalars": len(values)}
    return Counterexample(arguments={"logits": logits, "p": 0.5}, **{**given, **fields})


def of_ties(*examples: Counterexample) -> Finding:
    """The finding of a cause whose condition is ties, from rows with these counterexamples."""
    check = ROWS["top_p_filter.equation"]
    one = Example(CheckRun(check, "fp64"), (frozenset({"ties in logits"}),), VALUE, message="result[0]: observed 1")
    rows = [
        CheckRun(check, "fp64").result(Status.FAIL, message="result[0]: observed 1", counterexample=example)
        for example in examples
    ]
    cause = Cause(Condition("top_p_filter", ("ties in logits",)), (one,), confirmed=True)
    return assembled(cause, Known(), rows)


def test_a_finding_shows_a_call_that_its_condition_is_true_of() -> None:
    untied, tied = recorded([2.0, 1.0]), recorded([2.0, 1.0, 1.0])
    found = of_ties(untied, tied)
    assert found.when == "with ties in logits"
    assert found.counterexample == vars(tied)


def test_a_condition_that_is_not_true_of_the_call_shown_is_not_said() -> None:
    found = of_ties(recorded([2.0, 1.0]))
    assert (found.what, found.when) == ("top_p_filter: the result is wrong for some calls", None)


def test_two_findings_that_show_one_call_with_one_result_are_one() -> None:
    one, same, other = (vars(recorded([2.0, x])) for x in (1.0, 1.0, 0.5))
    whats = [("wrong", one), ("wrong with ties", same), ("wrong with an offset", other)]
    found = [finding("top_p_filter", f"law{i}", what=what, counterexample=x) for i, (what, x) in enumerate(whats)]
    first, second = merged(found)
    assert (first.what, second.what) == ("wrong", "wrong with an offset")
    assert first.rows == ("top_p_filter.law0", "top_p_filter.law1")


def test_one_sentence_is_told_once_with_the_gravest_weight() -> None:
    grave = finding("rope", "law", what="rope: p is ignored", weight=Weight.WRONG, when="with p")
    (one,) = merged([finding("rope", "other", what="rope: p is ignored"), grave])
    assert (one.weight, one.when, one.rows) == (Weight.WRONG, None, ("rope.law", "rope.other"))


def test_the_smallest_call_is_shown_whatever_numbers_its_message_has() -> None:
    rows = []
    for size in (56, 1):
        message = (
            f"result has shape ({size},), torch.float64, on cpu; expected shape (1, {size}), torch.float64, on cpu"
        )
        row = CheckRun(ROWS["top_p_filter.equation"], "fp64")
        rows.append(row.result(Status.FAIL, message=message, counterexample=recorded([1.0] * size)))
    telling = example(failed=Signature(Failing.PROPERTY, "shape"), slug="top_p_filter.equation")
    cause = Cause(Condition("top_p_filter"), (replace(telling, message=str(rows[0].message)),), confirmed=True)
    shown = assembled(cause, Known(), rows).counterexample
    assert shown is not None
    assert shown["scalars"] == 1


@pytest.mark.parametrize(("ordinary", "due"), [(True, Weight.WRONG), (False, Weight.FRAGILE), (None, Weight.WRONG)])
def test_what_no_survey_meets_is_called_wrong_of_ordinary_calls_alone(ordinary: bool | None, due: Weight) -> None:
    row = CheckRun(ROWS["top_p_filter.equation"], "fp64")
    shown = recorded([2.0, 1.0], ordinary=ordinary)
    (found,) = plain([row.result(Status.FAIL, message="result[0]: observed 1", counterexample=shown)])
    assert found.weight is due
