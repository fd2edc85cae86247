import json
import re

import pytest
import torch
from click.testing import CliRunner
from torch.nn.functional import scaled_dot_product_attention

from veriformer.bench import gpu_attention
from veriformer.bench.cli import bench
from veriformer.bench.gpu_attention import AttentionKernel, Setting, WrongError, spread, verify

CPU = torch.device("cpu")


def as_kernels_do(q, k, v, *, is_causal, scale=None):
    """The formula, with weights rounded to halves before they are multiplied."""
    n = q.shape[2]
    s = (q.float() @ k.float().mT) * (q.shape[3] ** -0.5 if scale is None else scale)
    if is_causal:
        s = s.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
    return (s.softmax(-1).to(q.dtype).float() @ v.float()).to(q.dtype)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("is_causal", [False, True])
def test_right_attentions_may_be_timed(dtype, is_causal):
    for attend in (as_kernels_do, scaled_dot_product_attention):
        verify(attend, width=64, dtype=dtype, is_causal=is_causal, device=CPU)


WRONG = {
    "a scale of its own": lambda q, k, v, is_causal: as_kernels_do(q, k, v, is_causal=is_causal, scale=0.13),
    "not causal": lambda q, k, v, is_causal: as_kernels_do(q, k, v, is_causal=False),
    "a last value forgotten": lambda q, k, v, is_causal: as_kernels_do(
        q, k, v.masked_fill(torch.arange(v.shape[2])[:, None] == v.shape[2] - 1, 0), is_causal=is_causal
    ),
    "no gradient of the keys": lambda q, k, v, is_causal: as_kernels_do(q, k.detach() + 0 * k, v, is_causal=is_causal),
    "NaN": lambda q, k, v, is_causal: as_kernels_do(q, k, v, is_causal=is_causal) * torch.nan,
}


@pytest.mark.parametrize("attend", WRONG.values(), ids=WRONG)
def test_wrong_ones_may_not(attend):
    with pytest.raises(WrongError, match="times what rounding explains"):
        verify(attend, width=64, dtype=torch.bfloat16, is_causal=True, device=CPU)


def test_flops_are_those_of_visible_pairs():
    forward = Setting(n=512, d=64, is_causal=False, passes="forward", dtype="bfloat16")
    assert forward.sizes == {"B": 32, "H": 32}
    assert forward.flops == 4 * 32 * 32 * 512**2 * 64
    backward = Setting(n=512, d=64, is_causal=True, passes="backward", dtype="bfloat16")
    assert backward.flops == 10 * 32 * 32 * 512 * 513 // 2 * 64


def test_the_middle_and_the_spread():
    assert spread([4.0, 1.0, 3.0, 2.0, 100.0]) == (3.0, (52.0 - 1.5) / 2 / 3.0)


@pytest.fixture
def timed(monkeypatch):
    """Three kernels on the CPU and a clock that gives everyone a tenth of a millisecond."""

    def broken(*arguments, **options):
        raise NotImplementedError("no kernel for this device\nand much more")

    found = (
        AttentionKernel("good", scaled_dot_product_attention),
        AttentionKernel("bad", WRONG["not causal"]),
        AttentionKernel("gone", broken),
    )
    clock = {"ran": []}

    def interleaved(runs, *, rounds):
        clock["ran"] += [run() for run in runs.values()]
        return {name: [1e-4] * rounds for name in runs}

    monkeypatch.setattr(gpu_attention, "attention_kernels", lambda: found)
    monkeypatch.setattr(gpu_attention, "_DEVICE", CPU)
    monkeypatch.setattr(gpu_attention, "_TOKENS", 32)
    monkeypatch.setattr(gpu_attention, "_MODEL", 32)
    monkeypatch.setattr(gpu_attention, "interleaved", interleaved)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    return clock


def test_all_take_turns(timed, tmp_path):
    file = tmp_path / "rates.json"
    words = ["gpu-attention", "--length", "32", "--width", "16", "--rounds", "4", "--json", str(file)]
    found = CliRunner().invoke(bench, words)
    assert found.exit_code == 1, found.output
    lines = found.output.splitlines()
    assert [re.split(r"\s+", line)[:4] for line in lines] == [
        [passes, "d=16", "n=32", seen] for seen in ("full", "causal") for passes in ("forward", "backward")
    ]
    for text in lines:
        assert re.search(r"good: \d+ TFLOP/s ±0 %", text)
        assert text.endswith("gone: not timed (NotImplementedError: no kernel for this device)")
        assert ("bad: WRONG (output: the error is" in text) == ("causal" in text)
    rates = json.loads(file.read_text())["rates"]
    assert len(rates) == 12
    assert [rate["kernel"] for rate in rates if rate["wrong"]] == ["bad", "bad"]
    first = rates[0]
    assert first["tflops"] == 4 * 2 * 32 * 32 * 16 / first["seconds"] / 1e12
    assert len(timed["ran"]) == 2 * 2 + 2


def test_what_was_timed_before_an_interrupt_is_kept(timed, tmp_path, monkeypatch):
    measure, file = gpu_attention.measure, tmp_path / "rates.json"

    def interrupted(*given):
        yield next(measure(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(gpu_attention, "measure", interrupted)
    words = ["gpu-attention", "--length", "32", "--width", "16", "--rounds", "4", "--json", str(file)]
    assert CliRunner().invoke(bench, words).exit_code == 130
    assert {rate["setting"]["passes"] for rate in json.loads(file.read_text())["rates"]} == {"forward"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_the_command_says_that_it_needs_one():
    found = CliRunner().invoke(bench, ["gpu-attention"])
    assert found.exit_code == 2
    assert "gpu-attention: expected a CUDA device, got none" in found.output


def test_kernels_have_names_of_their_own(monkeypatch):
    monkeypatch.setattr(gpu_attention, "triton_attention", lambda: scaled_dot_product_attention)
    names = [each.name for each in gpu_attention.attention_kernels()]
    assert names == ["triton", "sdpa flash", "sdpa cudnn", "sdpa efficient", "flex"]
    q = torch.randn(1, 2, 40, 16, dtype=torch.bfloat16)
    flash = gpu_attention.attention_kernels()[1].attend
    assert torch.equal(flash(q, q, q, is_causal=True), scaled_dot_product_attention(q, q, q, is_causal=True))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
def test_our_kernels_are_right_and_timed_on_the_device():
    rates = [rate for found in gpu_attention.measure([512], [64, 128], "bfloat16", 4) for rate in found]
    ours = [rate for rate in rates if rate.kernel == "triton"]
    assert len(ours) == 8
    assert all(rate.tflops for rate in ours), [rate.reason for rate in ours]


def test_flex_attention_is_compiled_for_every_shape(monkeypatch):
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward

    attend = torch.compile(lambda q, k, v, block_mask: q @ k.mT @ v, dynamic=False, backend=backend)
    monkeypatch.setattr(gpu_attention, "_compiled_flex", lambda: (attend, None))
    torch._dynamo.reset()
    for n in range(2, 14):
        gpu_attention._flex(*torch.ones(3, 1, 1, n, 4), is_causal=False)
    assert len(compiled) == 12
