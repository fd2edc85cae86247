"""Refusals of a target are not provided; wrong answers stay violations, and so do refusals that have no rule."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests import adapters
from veriformer import impl
from veriformer.verify import check
from veriformer.verify.contract import dtypes
from veriformer.verify.domain.inference import Probed, infer_refusals
from veriformer.verify.domain.probe import NO_GRAPH, Probe, probe_operation
from veriformer.verify.engine.look import Asked
from veriformer.verify.engine.probe import probe
from veriformer.verify.judging.exceptions import RowTimeout
from veriformer.verify.operations.registry import OPERATIONS
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.record import Results
from veriformer.verify.results.verdict import Status
from veriformer.verify.targets.claims import ClaimsWarning, read_claims
from veriformer.verify.targets.loading import wrap

pytestmark = pytest.mark.usefixtures("warm")
BY_NAME = {operation.name: operation for operation in OPERATIONS}


def found(**operation: Any) -> Domain:
    """Probe one operation and return its domain."""
    ((name, function),) = operation.items()
    return probe_operation(wrap(adapters.target(**{name: function})), BY_NAME[name], seconds=600)  # also when busy


def calls(count: int, names: str, refuses: Any) -> list[Probed]:
    """Calls with random features out of these, refused where a function of them says so."""
    chance = random.Random(1)
    drawn = [frozenset(name for name in names if chance.random() < 0.4) for _ in range(count)]
    return [Probed(features, "no" if refuses(features) else None) for features in drawn]


@pytest.mark.parametrize(
    ("refuses", "labels"),
    [
        (lambda has: "a" in has, {"a"}),
        (lambda has: has & {"b", "e"}, {"b", "e"}),
        (lambda has: has >= {"c", "d"}, {"c + d"}),
        (lambda has: "a" in has or has >= {"c", "d"}, {"a", "c + d"}),
        (lambda has: False, set()),
        (lambda has: random.Random(sum(map(ord, has))).random() < 0.33, set()),
    ],
)
def test_the_fewest_features_explain_the_refusals(refuses: Any, labels: set[str]) -> None:
    assert infer_refusals(calls(150, "abcdefgh", refuses), "abcdefgh").keys() == labels


def test_refusals_without_a_rule_explain_nothing() -> None:
    chance = random.Random(3)
    for _ in range(50):
        assert (
            infer_refusals(
                calls(60, "abcdefghijklmnopqrst", lambda has: chance.random() < 0.33), "abcdefghijklmnopqrst"
            )
            == {}
        )


@pytest.mark.whole
def test_heads_that_are_not_grouped_are_found_with_what_was_said() -> None:
    domain = found(attention=adapters.attention)
    assert domain.refused.keys() == {"grouped heads"}
    assert domain.refused["grouped heads"].startswith("RuntimeError: The size of tensor")
    assert {"one key head for several", "a mask of rank 3", "n_q ≠ n_k", "gradients"} <= set(domain.provided)


def filled_with_a_large_number(q: Any, k: Any, v: Any, *, mask: Any = None) -> Any:
    """Fill hidden scores with −10⁹, which float16 does not hold: such a call raises in this format alone."""
    s = q @ k.repeat_interleave(q.shape[1] // k.shape[1], 1).mT / q.shape[-1] ** 0.5
    s = s if mask is None else s.masked_fill(~mask, -1e9)
    return s.softmax(-1) @ v.repeat_interleave(q.shape[1] // v.shape[1], 1)


@pytest.mark.whole
def test_a_feature_that_one_format_refuses_is_named_with_it() -> None:
    domain = found(attention=filled_with_a_large_number)
    assert domain.refused.keys() == {"fp16 + a mask"}


@pytest.mark.whole
@pytest.mark.parametrize(
    ("operation", "adapter", "some"),
    [
        ("attention", adapters.square_only, {"n_q ≠ n_k", "d_v ≠ d_k", "grouped heads"}),
        ("softmax", adapters.last_axis, {"another axis than the last"}),
        ("silu", adapters.half_only, {"fp64", "fp32"}),
        ("silu", adapters.forward_only, {"gradients"}),
        ("attention", adapters.without_causal_window, {"a mask and causality"}),
    ],
)
def test_what_is_always_refused_is_found(operation: str, adapter: Any, some: set[str]) -> None:
    domain = found(**{operation: adapter})
    assert some <= domain.refused.keys()
    assert not set(domain.provided) & set(domain.refused)


@pytest.mark.whole
def test_an_argument_that_the_signature_requires_is_always_given() -> None:
    def rms_norm(x: Any, weight: Any, eps: Any) -> Any:
        return impl.rms_norm(x, weight, eps=eps)

    assert found(rms_norm=rms_norm).refused == {"the default of weight": "the signature requires it"}
    rows = judged("rms_norm.equation", "rms_norm.gradient", rms_norm=rms_norm)
    assert set(rows.values()) == {Status.PASS}

    def halved(x: Any, weight: Any, eps: Any) -> Any:
        return impl.rms_norm(x, weight, eps=eps) / 2

    assert Status.FAIL in judged("rms_norm.equation", rms_norm=halved).values()


@pytest.mark.whole
def test_a_built_in_without_a_signature_is_given_what_it_demands() -> None:
    rows = judged("softmax.contract", "logsumexp.contract", softmax=torch.softmax, logsumexp=torch.logsumexp)
    assert len(rows) >= 2
    assert set(rows.values()) == {Status.PASS}


def square_heads(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, *, num_heads: int) -> Any:
    """Multi-head attention of square weights only."""
    assert w_q.shape == w_k.shape == w_v.shape == w_o.shape == (x.shape[-1], x.shape[-1])
    return impl.multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads=num_heads)


@pytest.mark.whole
def test_plain_shapes_are_found_where_the_draws_seldom_have_them() -> None:
    domain = found(multi_head_attention=square_heads)
    assert domain.refused.keys() == {"d_out ≠ d", "d_v ≠ d_k", "heads narrower or wider than d / H"}
    assert Status.PASS in judged("multi_head_attention.equation", multi_head_attention=square_heads).values()


def causal_square_heads(
    x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, *, num_heads: int, is_causal: bool = False
) -> Any:
    assert w_q.shape == w_k.shape == w_v.shape == w_o.shape == 2 * x.shape[-1:]
    return impl.multi_head_attention(x, w_q, w_k, w_v, w_o, num_heads=num_heads, is_causal=is_causal)


@pytest.mark.whole
def test_an_argument_that_is_never_given_explains_no_refusal() -> None:
    assert not [label for label in found(multi_head_attention=causal_square_heads).refused if "num_kv_heads" in label]


@pytest.mark.whole
def test_what_is_ordinary_for_others_may_be_refused() -> None:
    def mlp(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        assert x.ndim == 2
        return impl.mlp(x, w1, b1, w2, b2)

    assert found(mlp=mlp).refused.keys() == {"x of rank 1", "several leading axes"}


@pytest.mark.whole
def test_the_edges_of_attention_may_be_refused() -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        assert q.shape[2] > 0 < k.shape[2]
        return impl.attention(q, k, v)

    assert found(attention=attention).refused.keys() == {"no queries", "no keys"}


@pytest.mark.whole
def test_a_quantised_cache_may_be_refused() -> None:
    def unquantised(*sizes: int, quantization: str | None = None, **options: Any) -> Any:
        if quantization is not None:
            raise NotImplementedError("quantization: none")
        return impl.kv_cache(*sizes, **options)

    assert found(kv_cache=unquantised).refused == {"quantization='int8'": "NotImplementedError: quantization: none"}
    assert not found(kv_cache=impl.kv_cache).refused


@pytest.mark.whole
def test_positions_beyond_a_table_may_be_refused() -> None:
    def looked_up(x: Any, positions: Any, **options: Any) -> Any:
        if (positions >= 4096).any():
            raise IndexError("beyond the table")
        return impl.rope(x, positions, **options)

    assert found(rope=looked_up).refused == {"positions above 4095": "IndexError: beyond the table"}
    run = check(adapters.target(rope=looked_up), only=["rope.far"], profile="quick", dtype=["fp32"])
    assert run.findings == []


def test_no_graph_is_said_to_be_one() -> None:
    assert found(silu=adapters.forward_only).refused == {"gradients": NO_GRAPH}


@pytest.mark.whole
@pytest.mark.parametrize("operation", ["attention", "softmax", "rms_norm", "cross_entropy", "kv_cache"])
def test_nothing_is_refused_by_the_shipped_implementation(operation: str) -> None:
    domain = probe_operation(wrap(impl), BY_NAME[operation])
    assert (domain.refused, domain.rules, domain.constants, domain.precision) == ({}, (), {}, {})


@pytest.mark.whole
def test_parameters_that_are_stepped_never_overlap_in_memory() -> None:
    probe_of_it = Probe(wrap(impl), BY_NAME["gradient_descent"])
    probe_of_it.run()
    assert {call.error for call in probe_of_it.calls} == {None}


@pytest.mark.whole
def test_what_is_refused_for_no_reason_or_computed_wrongly_is_not_narrower() -> None:
    assert found(softmax=adapters.moody(0.33)).refused == {}
    assert "grouped heads" in found(attention=adapters.tiled_heads).provided


@pytest.mark.parametrize("eps", [1e-6, 1e-5, 3e-5, 2.5e-3])
def test_an_epsilon_is_measured(eps: float) -> None:
    assert found(rms_norm=adapters.rms_norm(eps)).constants == {"eps": eps}


def test_the_form_of_gelu_is_measured() -> None:
    assert found(gelu=adapters.tanh_gelu).constants == {"approximate": "tanh"}


def test_an_offered_default_of_the_contract_is_not_measured_but_judged() -> None:
    def rms_norm(x: Any, weight: Any = None, *, eps: float = 1e-6) -> Any:
        return adapters.rms_norm(1e-4)(x, weight)

    assert found(rms_norm=rms_norm).constants == {}


@pytest.mark.whole
def test_float32_inside_float64_is_found_and_judged_by() -> None:
    assert found(silu=adapters.in_float32).precision == {"fp64": "fp32"}
    rows = judged("silu.equation", dtype=dtypes.NAMES, silu=adapters.in_float32)
    assert set(rows.values()) == {Status.PASS}


def results(*only: str, claims: Any = None, dtype: Sequence[str] = ("fp32",), **operations: Any) -> Results:
    """A quick run, in one format where the formats are not what it is about."""
    return check(adapters.target(claims, **operations), only=only, profile="quick", dtype=dtype)


def judged(*only: str, claims: Any = None, dtype: Sequence[str] = ("fp32",), **operations: Any) -> dict[str, Status]:
    """The rows of a quick run by key, with their statuses."""
    return {row.key: row.status for row in results(*only, claims=claims, dtype=dtype, **operations).results}


@pytest.mark.whole
def test_rows_are_judged_without_what_is_refused_and_say_so_where_nothing_is_left() -> None:
    only = ("attention.equation", "attention.grouped_heads")
    run = results(*only, attention=adapters.attention)
    assert {row.requirement for row in run.results if row.status is Status.PASS} >= {"attention.equation"}
    said = {row.message for row in run.results if row.requirement == "attention.grouped_heads"}
    assert all(str(message).startswith("not provided: grouped heads (RuntimeError: ") for message in said)
    assert run.domain["attention"].refused.keys() == {"grouped heads"}


@pytest.mark.whole
def test_a_claim_to_provide_it_makes_a_refusal_a_violation() -> None:
    claims = {"provides": {"attention": ["grouped heads"]}}
    assert Status.FAIL in judged("attention.equation", claims=claims, attention=adapters.attention).values()


@pytest.mark.whole
def test_strictly_nothing_is_narrower() -> None:
    domains = {"attention": found(attention=adapters.attention)}
    target = wrap(adapters.target(attention=adapters.attention))
    assert target.within(domains).refusals("attention").messages
    assert not target.within(domains, strict=True).refusals("attention").messages


@pytest.mark.whole
def test_wrong_or_moody_ones_stay_violated() -> None:
    assert Status.FAIL in judged("attention.grouped_heads", attention=adapters.tiled_heads).values()
    assert Status.FAIL in judged("softmax.equation", softmax=adapters.moody(0.33)).values()


@pytest.mark.whole
def test_dtypes_and_gradients_that_are_refused_are_not_provided() -> None:
    rows = judged("silu.equation", dtype=("fp64", "fp16"), silu=adapters.half_only)
    assert rows["silu.equation[fp64-cpu]"] is Status.NOT_PROVIDED
    assert rows["silu.equation[fp16-cpu]"] is Status.PASS
    rows = judged("silu.gradient", dtype=dtypes.NAMES, silu=adapters.forward_only)
    assert {status for key, status in rows.items() if "gradient" in key} == {Status.NOT_PROVIDED}


@pytest.mark.whole
def test_an_epsilon_that_was_measured_is_judged_by() -> None:
    only = ("rms_norm.equation", "rms_norm.gradient")
    rows = judged(*only, dtype=dtypes.NAMES, rms_norm=adapters.rms_norm(3e-5))
    assert {status for key, status in rows.items() if "fp16" not in key} == {
        Status.PASS
    }  # where its gradient overflows


@pytest.mark.whole
def test_laws_of_adam_take_the_constants_that_were_measured() -> None:
    only = ("adam.constant_gradient", "adam.long_run", "adam.equation")
    rows = judged(*only, adam=lambda params, lr: impl.adam(params, lr, betas=(0.9, 0.95), eps=1e-5))
    assert set(rows.values()) == {Status.PASS}


def project(x: torch.Tensor, *weights: torch.Tensor, num_heads: int) -> torch.Tensor:
    if num_heads == 1 and weights[0].shape[1] % 2:
        raise ValueError("num_heads: one head of odd width")
    return impl.multi_head_attention(x, *weights, num_heads=num_heads)


def refuse_causal(x: Any, w_q: Any, w_k: Any, w_v: Any, w_o: Any, *, num_heads: int, is_causal: bool = False) -> Any:
    if is_causal or w_k.shape[1] != w_v.shape[1] or w_o.shape[1] != x.shape[-1]:
        raise ValueError("is_causal, w_v, w_o: not taken")
    return project(x, w_q, w_k, w_v, w_o, num_heads=num_heads)


@pytest.mark.whole
def test_calls_are_drawn_without_the_causality_and_groups_that_a_layer_has_not() -> None:
    rows = judged("multi_head_attention.equation", multi_head_attention=refuse_causal)
    assert set(rows.values()) == {Status.PASS}


def test_a_claim_about_features_that_do_not_exist_is_warned_of() -> None:
    with pytest.warns(ClaimsWarning, match="flying heads"):
        read_claims({"provides": {"attention": ["flying heads"]}})


@pytest.mark.whole
@pytest.mark.parametrize("jobs", [1, 2, 3])
def test_a_crash_of_the_probe_costs_one_domain(tmp_path: Any, jobs: int) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import os\nfrom veriformer import impl\n\n\ndef silu(x):\n    os._exit(3)\n\n\n"
        "def gelu(x, *, approximate='none'):\n    return impl.gelu(x, approximate=approximate)\n"
    )
    domains = probe(str(mine), "cpu", ("silu", "gelu"), jobs=jobs).domains
    assert domains.keys() == {"gelu"}
    assert domains["gelu"]["provided"]


@pytest.mark.parametrize(("provided", "jobs", "processes"), [(6, 4, 1), (11, 4, 1), (12, 4, 2), (30, 2, 2)])
def test_another_process_probes_where_there_is_more_to_probe_than_it_takes_to_start_one(
    provided: int, jobs: int, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"operation {number}" for number in range(provided))
    probed: list[list[str]] = []

    class Started(contextlib.nullcontext):  # type: ignore[type-arg]
        def load(self) -> Started:
            return self

        __enter__ = load

        def describe(self, asked: Asked) -> dict[str, Any]:
            return {"implementation": {}, "environment": {}, "suite": {}, "warnings": []}

        def find_out(self, operations: Sequence[str]) -> list[Any]:
            probed.append([*operations])
            return []

    monkeypatch.setattr("veriformer.verify.engine.probe.Look", Started)
    assert probe("mine.py", "cpu", names, jobs=jobs).domains == {}
    assert len(probed) == processes
    assert sorted(name for some in probed for name in some) == sorted(names)


def test_what_was_known_before_a_crash_of_the_probe_is_kept(tmp_path: Any) -> None:
    """The plain calls show that there are no gradients; a number at the edge of the format then ends the process."""
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import os\n\nimport torch\n\n\n"
        "def silu(x):\n"
        "    if x.ndim == 0 or not x.isfinite().all() or (x.numel() and x.abs().max() > 10):\n"
        "        os.kill(os.getpid(), 11)\n"
        "    return torch.nn.functional.silu(x.detach())\n",
        encoding="utf-8",
    )
    domain = Domain.from_dict(probe(str(mine), "cpu", ("silu",)).domains["silu"])
    assert "gradients" in domain.refused


def test_a_domain_survives_being_written() -> None:
    domain = Domain(provided=("a",), refused={"b": "no"}, rules=("n a multiple of 16",), precision={"fp64": "fp32"})
    assert Domain.from_dict(domain.to_dict()) == domain
    assert SimpleNamespace(**domain.to_dict()).refused == {"b": "no"}


@pytest.mark.whole
@pytest.mark.parametrize("also_idle", [False, True])
def test_dropout_may_be_refused(also_idle: bool) -> None:
    def attention(
        q: Any, k: Any, v: Any, *, dropout_p: float = 0.0, training: bool = False, generator: Any = None
    ) -> Any:
        if dropout_p > 0 and (training or also_idle):
            raise NotImplementedError("no dropout")
        return impl.attention(q, k, v)

    assert found(attention=attention).refused.keys() == {"a dropout_p" if also_idle else "dropout"}
    rows = judged("attention.dropout_scale", "attention.dropout_off", attention=attention)
    assert rows["attention.dropout_scale[fp32-cpu]"] is Status.NOT_PROVIDED
    assert rows["attention.dropout_off[fp32-cpu]"] is Status.PASS


@pytest.mark.whole
def test_an_ignored_index_above_all_classes_may_be_refused() -> None:
    def cross_entropy(logits: Any, target: Any, *, ignore_index: int = -100) -> Any:
        hit = logits.gather(-1, target.clamp(min=0)[..., None])[..., 0]
        loss = torch.where(target != ignore_index, logits.logsumexp(-1) - hit, 0.0)
        return loss.sum() / (target != ignore_index).sum().clamp(min=1)

    refused_ = found(cross_entropy=cross_entropy).refused
    assert "ignored targets + an ignore_index above all classes" in refused_, refused_


def test_constants_are_measured_before_the_time_may_be_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the drawn calls take all of it: a network with ReLU is still judged as one."""

    def late(self: Probe, base: str) -> None:
        raise RowTimeout

    monkeypatch.setattr(Probe, "_draw", late)

    def feed_forward(x: Any, w1: Any, b1: Any, w2: Any, b2: Any) -> Any:
        return (x @ w1 + b1).relu() @ w2 + b2

    assert found(feed_forward=feed_forward).constants == {"activation": "relu"}


def _as_number(factor: float) -> Any:
    def mse_loss(prediction: Any, target: Any) -> float:
        return factor * float(((prediction - target).double() ** 2).sum(-1).mean())

    return adapters.target(mse_loss=mse_loss)


@pytest.mark.whole
def test_a_loss_may_come_as_a_number_of_python() -> None:
    only = ["mse_loss.contract", "mse_loss.equation", "mse_loss.gradient", "mse_loss.result_dtype"]
    right = check(_as_number(1.0), only=only, dtype=["fp32"])
    assert [(row.requirement, row.status) for row in right.results] == [
        ("mse_loss.contract", Status.PASS),
        ("mse_loss.result_dtype", Status.ADVICE),
        ("mse_loss.equation", Status.PASS),
        ("mse_loss.gradient", Status.NOT_PROVIDED),
    ]
    assert right.verdict == "holds"
    wrong = check(_as_number(1.01), only=only, dtype=["fp32"])
    equation = next(row for row in wrong.results if row.requirement == "mse_loss.equation")
    assert equation.status is Status.FAIL
    assert equation.counterexample is not None
    assert "isinstance(r0, float)" in str(equation.counterexample.script)
