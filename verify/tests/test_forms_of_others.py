"""Losses, samplers, schedules, models of two sequences, arrays of other frameworks, and problems of benchmarks."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner

from tests.edited_files import edited
from tests.faulty_forms import form_file
from tests.source_texts import read_pins
from veriformer.verify import bind, check
from veriformer.verify.cli import verify
from veriformer.verify.commands.request import is_problem, joined_status
from veriformer.verify.forms.drawing import distribution
from veriformer.verify.forms.form import Fit, NotOffered
from veriformer.verify.forms.functions.scheduler_objects import RATES
from veriformer.verify.presentation.terminal import as_text
from veriformer.verify.recognition.nearest import _tenable
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.results import Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.targets.source_files import module_of

pytestmark = pytest.mark.usefixtures("warm")

HERE = Path(__file__).parent / "forms"

KINDS = {
    "losses": {
        ("LabelSmoothing", "cross_entropy"),
        ("SmoothedCrossEntropy", "cross_entropy"),
        ("fused_linear_cross_entropy", "cross_entropy"),
        ("sample", "temperature_scale"),
        ("sample", "top_k_filter"),
        ("sample_top_p", "top_p_filter"),
    },
    "schedules": {
        ("get_cosine_schedule_with_warmup", "warmup_cosine"),
        ("LinearWarmupLR", "warmup"),
        ("NoamOpt", "noam"),
    },
    "models_of_two": {("Transformer", "causal_lm"), ("NextTokenLM", "causal_lm")},
    "arrays_of_numpy": {("softmax", "softmax"), ("layer_norm", "layer_norm"), ("gelu", "gelu")},
}


@pytest.mark.whole
@pytest.mark.parametrize("name", KINDS)
def test_each_is_recognised_and_a_fault_is_no_convention(name: str) -> None:
    for file, right in ((name, True), (f"{name}_faulty", False)):
        pins = recognise(module_of(form_file(file))).pins
        assert {(pin.name, pin.operation) for pin in pins} == KINDS[name]
        assert {pin.everywhere for pin in pins} == {right}, pins


@pytest.mark.whole
def test_a_smoothing_that_is_shared_otherwise_is_told() -> None:
    pins = recognise(module_of(HERE / "losses.py").LabelSmoothing).pins
    assert pins[0].deviations == ("over", "spread", "gives", "reduction")


@pytest.mark.whole
def test_sizes_of_a_rate_are_told_by_what_they_do() -> None:
    found = {pin.name: pin for pin in recognise(module_of(HERE / "rates.py")).pins}
    assert {(pin.operation, pin.deviations) for pin in found.values()} == {("warmup_cosine", ())}
    assert found["get_lr"].readings["roles"] == "total as total_steps, peak as max_lr, floor as lowest"
    assert set(found["learning_rate"].readings["roles"].split(", ")) == {
        *("RAMP as warmup_steps", "END as total_steps"),
        *("PEAK as max_lr", "FLOOR as lowest"),
    }
    assert {name for name, pin in found.items() if pin.everywhere} == {"get_lr", "learning_rate"}
    assert found["lr_of"].readings["roles"] == "total as total_steps, peak as max_lr"


def test_a_schedule_without_an_end_may_warm_up_for_longer_than_it_is_run() -> None:
    form, kind = "functions/noam_of_scheduler", module_of(HERE / "schedules.py").NoamOpt
    first, second = (bind(form, kind, rate=RATES[0])(step=step, d_model=64, warmup_steps=4000) for step in (1, 2))
    assert second == 2 * first > 0


@pytest.mark.whole
def test_what_is_called_sampling_and_gives_logits_is_a_filter() -> None:
    def top_k_sampling(logits: torch.Tensor, k: int) -> torch.Tensor:
        least = logits.topk(min(k, logits.shape[-1]), -1).values[..., -1:]
        return logits.masked_fill(logits < least, -torch.inf)

    (found,) = recognise(top_k_sampling).pins
    assert (found.operation, found.form, found.everywhere) == ("top_k_filter", "functions/top_k", True)


def test_the_distribution_of_a_sampler_is_exact() -> None:
    logits = torch.tensor([[0.5, -1.0, 2.0, 0.0], [1.0, 1.5, -3.0, 0.25]])
    sampler = module_of(HERE / "losses.py").sample
    support, mass = distribution(lambda x: sampler(x[:, None], 0.7, 2), logits, alone=False)
    assert support.tolist() == [[True, False, True, False], [True, True, False, False]]
    assert mass is not None
    kept = logits.masked_fill(~support, -torch.inf)
    assert mass.float().sum(-1).tolist() == [1.0, 1.0]
    assert round(float(mass[0, 2] / mass[0, 0]), 3) == round(math.exp(1.5 / 0.7), 3)
    noisy, unknown = distribution(
        lambda x: (x.softmax(-1) / torch.empty_like(x).exponential_()).argmax(-1), kept, alone=True
    )
    assert noisy.equal(support)
    assert unknown is None
    with pytest.raises(NotOffered, match="draws 0 times"):
        distribution(lambda x: x.argmax(-1), logits, alone=False)


def test_functions_over_jax_arrays_have_results_and_gradients() -> None:
    pytest.importorskip("jax")
    x = torch.linspace(-2, 2, 8, dtype=torch.float64).requires_grad_()
    right = torch.nn.functional.silu(x)
    for file, near in (("arrays_of_jax", True), ("arrays_of_jax_faulty", False)):
        silu = bind("functions/silu", module_of(form_file(file)).swish)
        y = silu(x)
        (gradient,) = torch.autograd.grad(y.sum(), x)
        (wanted,) = torch.autograd.grad(right.sum(), x, retain_graph=True)
        assert y.dtype == torch.float64
        assert (y.float().equal(right.float()), gradient.float().equal(wanted.float())) == (near, near)


def test_attention_over_jax_arrays_has_results_and_gradients() -> None:
    """Each shape compiles anew, so there are two: as many queries as keys, and fewer."""
    pytest.importorskip("jax")
    generator = torch.Generator().manual_seed(0)
    for file, near in (("arrays_of_jax", True), ("arrays_of_jax_faulty", False)):
        form = {"layout": "[B,n,H,d]"}
        attention = bind("functions/qkv_attention", module_of(form_file(file)).dot_product_attention, **form)
        for n_q in (3, 2):
            q, k, v = (torch.randn(1, 2, n, 4, dtype=torch.float64, generator=generator) for n in (n_q, 3, 3))
            asked = [x.requires_grad_() for x in (q, k, v)]
            y, right = attention(q, k, v), torch.nn.functional.scaled_dot_product_attention(q, k, v)
            weights = torch.randn(right.shape, dtype=torch.float64, generator=generator)
            found = torch.autograd.grad(y, asked, weights)
            wanted = torch.autograd.grad(right, asked, weights)
            assert bool((y - right).abs().max() < 1e-12) == near
            assert all(bool((a - b).abs().max() < 1e-12) == near for a, b in zip(found, wanted, strict=True))


@pytest.mark.whole
def test_what_no_call_tells_is_left_out() -> None:
    """Its weight without part is not given, and its mask, of which every call is refused, is read in no way."""
    (pin,) = recognise(module_of(HERE / "attention_one_head.py").Attention).pins
    assert pin.everywhere
    assert pin.readings["mask"] == "not known"
    assert not pin.deviations
    assert "its mask is left out" in pin.told[0]


def test_a_reading_that_refuses_most_calls_is_none() -> None:
    few = Fit(24, 5, 2, True, 0.8, 1.0, raised=8)
    many = Fit(24, 12, 2, False, 0.4, 1.0, raised=1)
    assert few.better_than(many)
    assert _tenable([("few", few), ("many", many)]) == [("many", many)]


@pytest.mark.whole
def test_a_default_that_nothing_confirms_is_by_the_signature() -> None:
    def rms_norm(x: torch.Tensor, weight: torch.Tensor | None = None, *, eps: float = 1e-3) -> torch.Tensor:
        y = x / (x.square().sum(-1, keepdim=True) + eps).sqrt()
        return y if weight is None else y * weight

    found = check(SimpleNamespace(rms_norm=rms_norm), only=["rms_norm.equation"], dtype=["fp64"], profile="quick")
    domain = Domain.from_dict(found.to_dict()["domain"]["rms_norm"])
    assert (domain.constants, domain.how("eps")) == ({"eps": 1e-3}, "by the signature")
    assert "eps = 0.001, by the signature" in as_text(found)


@pytest.mark.whole
def test_a_problem_is_compared_and_its_solution_verified(tmp_path: Path) -> None:
    """The comparison is run as it is, on a solution that is wrong beyond 1."""
    file = tmp_path / "faulty_problem.py"
    fault = {"old": "x.clamp(min=0) ** 2", "new": "x.clamp(min=0) ** 2 * (x < 1)"}
    file.write_text(edited(HERE / "kernel_problem.py", [fault]), encoding="utf-8")
    found = CliRunner().invoke(
        verify, [str(file), "--jobs", "1", "--only", "silu.equation", "--dtype", "fp32", "--profile", "quick"]
    )
    assert found.exit_code == 1, found.output
    assert "ModelNew against Model" in found.output
    assert "DIFFER" in found.output
    assert "not provided silu" in found.output


def test_the_statuses_of_a_problem_are_joined() -> None:
    assert is_problem(str(HERE / "kernel_problem.py"))
    assert not is_problem(str(HERE / "losses.py"))
    assert [joined_status(*pair) for pair in ((0, 0), (0, 1), (1, 0), (0, 3), (3, 0))] == [0, 1, 1, 0, 3]


PLAIN_SHAPES = {
    ("DotProductAttention", "attention"): {"layout": "[BH,n,d]", "mask": "boolean"},
    ("attention", "attention"): {"layout": "[n,d]", "mask": "additive"},
    ("Head", "multi_head_attention"): {"causal": "always", "result": "without a projection"},
    ("MultiHeadAttention", "multi_head_attention"): {"causal": "always"},
    ("RMSNorm", "rms_norm"): {},
    ("GemmaRMSNorm", "rms_norm"): {"weight": "added to 1"},
    ("PartialRMSNorm", "rms_norm"): {},
    ("FeedForward", "swiglu"): {},
    ("LayerNorm", "layer_norm"): {},
}


@pytest.mark.whole
def test_code_without_heads_and_with_sizes_of_its_own_is_recognised() -> None:
    found = {(pin.name, pin.operation): pin for pin in recognise(module_of(HERE / "plain_shapes.py")).pins}
    assert found.keys() == PLAIN_SHAPES.keys()
    for key, readings in PLAIN_SHAPES.items():
        assert found[key].everywhere, found[key]
        assert {name: found[key].readings[name] for name in readings} == readings


@pytest.mark.whole
def test_the_mean_of_all_values_for_a_query_that_sees_nothing_is_a_convention() -> None:
    module = module_of(HERE / "plain_shapes.py")
    (filled,) = recognise(module.DotProductAttention).pins
    assert filled.conventions == {"attention.empty_row": "uniform"}
    (added,) = recognise(module.attention).pins  # −∞ throughout, which gives NaN
    assert not added.conventions


@pytest.mark.whole
def test_a_weight_that_is_added_to_one_is_no_fault() -> None:
    found = check(module_of(HERE / "plain_shapes.py").GemmaRMSNorm, only=["rms_norm"], dtype=["fp32"])
    assert not [row.key for row in found.results if row.status is Status.FAIL], as_text(found)
    assert {row.requirement for row in found.results if row.status is Status.PASS} >= {
        "rms_norm.equation",
        "rms_norm.gradient",
    }


AT_POSITIONS = """
import numpy as np

def sincos_position_embedding(width, positions):
    rates = 10000.0 ** -(np.arange(width // 2) / {half})
    angles = np.outer(positions.reshape(-1), rates)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
"""


def test_sinusoids_may_be_asked_for_by_positions_and_have_the_sines_first() -> None:
    pin = read_pins(AT_POSITIONS.format(half="(width / 2)"))["sinusoidal_encoding"]
    assert (pin.everywhere, pin.readings["columns"]) == (True, "sines, then cosines")
    wrong = read_pins(AT_POSITIONS.format(half="width")).get("sinusoidal_encoding")
    assert wrong is not None
    assert not wrong.everywhere
