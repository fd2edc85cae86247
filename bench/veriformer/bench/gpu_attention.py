"""Attention on a GPU: ours beside PyTorch's, each checked against the specification, then timed in turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from veriformer.bench.attention_kernels import AttentionKernel, attention_kernels
from veriformer.bench.check_before_timing import WrongError, verify
from veriformer.bench.gpu_timing import interleaved, spread
from veriformer.spec import costs

LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
WIDTHS = (64, 128)
_TOKENS, _MODEL = 16384, 2048  # tokens of a batch, and width of all heads together, at every length
_DEVICE = torch.device("cuda")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A shape and a pass to time."""

    n: int
    d: int
    is_causal: bool
    passes: str
    dtype: str

    @property
    def sizes(self) -> dict[str, int]:
        """Batch and heads, by their letters."""
        return {"B": max(_TOKENS // self.n, 1), "H": _MODEL // self.d}

    @property
    def flops(self) -> float:
        """FLOPs of the specification: two products forward and five backward, over visible pairs alone."""
        cost = costs.attention_flops() if self.passes == "forward" else costs.tiled_backward_flops()
        whole = costs.evaluate(cost, **self.sizes, G=self.sizes["H"], n_q=self.n, n_k=self.n, d_k=self.d, d_v=self.d)
        return float(whole) * ((self.n + 1) / (2 * self.n) if self.is_causal else 1)


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Measured rate of one kernel; `tflops` is None, with the reason, where it was not timed."""

    kernel: str
    setting: Setting
    tflops: float | None
    seconds: float | None = None
    spread: float | None = None
    reason: str | None = None
    wrong: bool = False

    def to_dict(self) -> dict[str, Any]:
        """A plain record."""
        return asdict(self)


def settings(lengths: Sequence[int], widths: Sequence[int], dtype: str) -> Iterator[Setting]:
    """Every shape and pass, backward right after forward."""
    for d in widths:
        for is_causal in (False, True):
            for n in lengths:
                for passes in ("forward", "backward"):
                    yield Setting(n=n, d=d, is_causal=is_causal, passes=passes, dtype=dtype)


def measure(lengths: Sequence[int], widths: Sequence[int], dtype: str, rounds: int) -> Iterator[list[Rate]]:
    """The rates of all kernels, setting by setting."""
    everyone, refused = attention_kernels(), {}
    for setting in settings(lengths, widths, dtype):
        key = (setting.d, setting.is_causal)
        if key not in refused:
            refused[key] = {each.name: _refusal(each, setting) for each in everyone}
        yield _time_in_turns(everyone, refused[key], setting, rounds)


def _refusal(kernel: AttentionKernel, setting: Setting) -> tuple[str, bool] | None:
    """Why a kernel is not timed, and whether because it is wrong; None where it may start."""
    try:
        verify(
            kernel.attend,
            width=setting.d,
            dtype=getattr(torch, setting.dtype),
            is_causal=setting.is_causal,
            device=_DEVICE,
        )
    except WrongError as error:
        return str(error), True
    except Exception as error:  # whatever a library raises where it has no kernel for this GPU
        return _first_line(error), False
    return None


def _time_in_turns(
    everyone: Sequence[AttentionKernel], refused: dict[str, tuple[str, bool] | None], setting: Setting, rounds: int
) -> list[Rate]:
    rates, runs = {}, {}
    for each in everyone:
        refusal = refused[each.name]
        if refusal is not None:
            rates[each.name] = Rate(kernel=each.name, setting=setting, tflops=None, reason=refusal[0], wrong=refusal[1])
            continue
        try:
            runs[each.name] = _ready(each, setting)
        except Exception as error:
            rates[each.name] = Rate(kernel=each.name, setting=setting, tflops=None, reason=_first_line(error))
    for name, seconds in interleaved(runs, rounds=rounds).items():
        middle, width = spread(seconds)
        tflops = setting.flops / middle / 1e12
        rates[name] = Rate(kernel=name, setting=setting, tflops=tflops, seconds=middle, spread=width)
    return [rates[each.name] for each in everyone]


def _ready(kernel: AttentionKernel, setting: Setting) -> Callable[[], object]:
    """A run of the pass that the setting names, tried once."""
    shape = (*setting.sizes.values(), setting.n, setting.d)
    dtype = getattr(torch, setting.dtype)
    q, k, v, g = (torch.randn(shape, device=_DEVICE, dtype=dtype) for _ in range(4))
    if setting.passes == "forward":

        def forward() -> object:
            with torch.no_grad():
                return kernel.attend(q, k, v, is_causal=setting.is_causal)

        forward()
        return forward
    leaves = [x.requires_grad_() for x in (q, k, v)]
    o = kernel.attend(*leaves, is_causal=setting.is_causal)

    def backward() -> object:
        return torch.autograd.grad(o, leaves, g, retain_graph=True)

    backward()
    return backward


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]


def line(rates: Sequence[Rate]) -> str:
    """Format one setting as one line."""
    setting = rates[0].setting
    head = f"{setting.passes:<8} d={setting.d:<3} n={setting.n:<5} {'causal' if setting.is_causal else 'full':<6}"
    return "  ".join([head, *(_cell(rate) for rate in rates)])


def _cell(rate: Rate) -> str:
    if rate.tflops is None or rate.spread is None:
        return f"{rate.kernel}: {'WRONG' if rate.wrong else 'not timed'} ({rate.reason})"
    return f"{rate.kernel}: {rate.tflops:.0f} TFLOP/s ±{100 * rate.spread:.0f} %"
