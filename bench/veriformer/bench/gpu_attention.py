"""Attention on a GPU: ours and PyTorch's, each checked against the specification, then timed in turns.

A kernel for halves accumulates in float32 and rounds to halves what it multiplies again: weights, gradients of scores,
outputs. The bound on an error is that of the specification's formula in float32, and what those roundings add.
Turns share clocks, heat and neighbours."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from statistics import median, quantiles
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from veriformer.bench.targets import triton_attention
from veriformer.spec import costs
from veriformer.spec.arithmetic import FORMATS, Float, Format, RunningError
from veriformer.spec.attention.attention import attention, attention_vjp

Attend = Callable[..., torch.Tensor]
"""Called with q, k, v `[B, H, n, d]` and `is_causal`."""


@dataclass(frozen=True)
class AttentionKernel:
    """An attention under a name; the first call of `attend` may compile."""

    name: str
    attend: Attend


def attention_kernels() -> tuple[AttentionKernel, ...]:
    """Return all of them, ours first."""
    kinds = (SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION)
    names = ("sdpa flash", "sdpa cudnn", "sdpa efficient")
    theirs = [AttentionKernel(name, partial(_by_kernel, kind)) for name, kind in zip(names, kinds, strict=True)]
    return (AttentionKernel("triton", triton_attention()), *theirs, AttentionKernel("flex", _flex))


def _by_kernel(kind: SDPBackend, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, is_causal: bool) -> torch.Tensor:
    with sdpa_kernel(kind):
        return scaled_dot_product_attention(q, k, v, is_causal=is_causal)


SHAPES = 256
"""Shapes that FlexAttention is compiled for. Beyond PyTorch's limit of 8 it would compute the formula, unnoticed."""


def _flex(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, is_causal: bool) -> torch.Tensor:
    attend, causal_blocks = _compiled_flex()
    blocks = causal_blocks(q.shape[2]) if is_causal else None
    with torch._dynamo.config.patch(recompile_limit=SHAPES, fail_on_recompile_limit_hit=True):
        return attend(q, k, v, block_mask=blocks)  # type: ignore[no-any-return]


@cache
def _compiled_flex() -> tuple[Any, Any]:
    """Compile FlexAttention, which is the formula otherwise; block masks are made once for each length."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    def causal(b: Any, h: Any, i: Any, j: Any) -> Any:
        return i >= j

    return torch.compile(flex_attention, dynamic=False), cache(lambda n: create_block_mask(causal, None, None, n, n))


LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
WIDTHS = (64, 128)
_TOKENS, _MODEL = 16384, 2048  # tokens of a batch, and width of all heads together, at every length
_DEVICE = torch.device("cuda")

_Reals = NDArray[np.float64]
_HALVES = {torch.bfloat16: FORMATS["bf16"], torch.float16: FORMATS["fp16"]}
_LENGTH, _HEADS = 193, 2  # beyond one block of every kernel, and no multiple of any

_LEAD_CYCLES = 2_000_000  # about a millisecond, in which the CPU gets ahead of the GPU


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
        """Return the FLOPs of the specification: two products forward and five backward, over visible pairs alone."""
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
        """Return a plain record."""
        return asdict(self)


def settings(lengths: Sequence[int], widths: Sequence[int], dtype: str) -> Iterator[Setting]:
    """Yield every shape and pass, backward right after forward."""
    for d in widths:
        for is_causal in (False, True):
            for n in lengths:
                for passes in ("forward", "backward"):
                    yield Setting(n=n, d=d, is_causal=is_causal, passes=passes, dtype=dtype)


def measure(lengths: Sequence[int], widths: Sequence[int], dtype: str, rounds: int) -> Iterator[list[Rate]]:
    """Yield the rates of all kernels, setting by setting."""
    everyone, refused = attention_kernels(), {}
    for setting in settings(lengths, widths, dtype):
        key = (setting.d, setting.is_causal)
        if key not in refused:
            refused[key] = {each.name: _refusal(each, setting) for each in everyone}
        yield _time_in_turns(everyone, refused[key], setting, rounds)


def _refusal(kernel: AttentionKernel, setting: Setting) -> tuple[str, bool] | None:
    """Return why a kernel is not timed, and whether because it is wrong; None where it may start."""
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
        return first_line(error), False
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
            runs[each.name] = run_of(each.attend, setting)
        except Exception as error:
            rates[each.name] = Rate(kernel=each.name, setting=setting, tflops=None, reason=first_line(error))
    for name, seconds in interleaved(runs, rounds=rounds).items():
        middle, width = spread(seconds)
        tflops = setting.flops / middle / 1e12
        rates[name] = Rate(kernel=name, setting=setting, tflops=tflops, seconds=middle, spread=width)
    return [rates[each.name] for each in everyone]


def run_of(attend: Attend, setting: Setting) -> Callable[[], object]:
    """Return a run of the pass that the setting names, tried once."""
    shape = (*setting.sizes.values(), setting.n, setting.d)
    dtype = getattr(torch, setting.dtype)
    q, k, v, g = (torch.randn(shape, device=_DEVICE, dtype=dtype) for _ in range(4))
    if setting.passes == "forward":

        def forward() -> object:
            with torch.no_grad():
                return attend(q, k, v, is_causal=setting.is_causal)

        forward()
        return forward
    leaves = [x.requires_grad_() for x in (q, k, v)]
    o = attend(*leaves, is_causal=setting.is_causal)

    def backward() -> object:
        return torch.autograd.grad(o, leaves, g, retain_graph=True)

    backward()
    return backward


def first_line(error: Exception) -> str:
    """Return what an error says, as a cell of a table."""
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


class WrongError(ValueError):
    """A result that is further from the exact one than rounding explains; the message says which and how far."""


def verify(
    attend: Attend, *, width: int, dtype: torch.dtype, is_causal: bool, device: torch.device, biased: bool = False
) -> None:
    """Judge output and gradients of one call, with a bias `[1, 1, n, n]` or without. Raises WrongError."""
    q, k, v, g = (torch.from_numpy(x).to(device, dtype) for x in _arguments(width, dtype))
    leaves, options = [x.requires_grad_() for x in (q, k, v)], {}
    if biased:
        options["bias"] = torch.from_numpy(_bias(width)).to(device, torch.float32).requires_grad_()
        leaves.append(options["bias"])
    o = attend(*leaves[:3], is_causal=is_causal, **options)
    got = (o, *torch.autograd.grad(o, leaves, g))
    names, wanted = ("output", "dq", "dk", "dv", "dbias"), expected(width, dtype, is_causal, biased)
    for name, x, (exact, bound) in zip(names[: len(got)], got, wanted, strict=True):
        ratio = float((np.abs(x.detach().double().cpu().numpy() - exact) / bound).max())
        if not ratio <= 1:
            raise WrongError(f"{name}: the error is {ratio:.3g} times what rounding explains")


@cache
def expected(width: int, dtype: torch.dtype, is_causal: bool, biased: bool = False) -> list[tuple[_Reals, _Reals]]:
    """Return exact output, dq, dk, dv and, if biased, dbias, each with the bound on a right kernel's error."""
    xp = RunningError(FORMATS["fp32"])
    arguments, bias = _arguments(width, dtype), _bias(width) if biased else None
    raised = [xp.asarray(x) for x in arguments]
    raised_bias = None if bias is None else xp.asarray(bias)
    results = (
        attention(xp, *raised[:3], is_causal=is_causal, bias=raised_bias),
        *attention_vjp(xp, *raised, is_causal=is_causal, bias=raised_bias),
    )
    added = _roundings(*arguments, bias=bias, half=_HALVES[dtype], is_causal=is_causal)
    judged = (xp.judgeable(x) for x in results if x is not None)
    return [(exact, bound + more) for (exact, bound), more in zip(judged, added, strict=True)]


def _arguments(width: int, dtype: torch.dtype) -> tuple[_Reals, ...]:
    """Draw q, k, v and a cotangent, exactly representable in the dtype."""
    generator = torch.Generator().manual_seed(width)
    shape = (1, _HEADS, _LENGTH, width)
    return tuple(torch.randn(shape, generator=generator).to(dtype).double().numpy() for _ in range(4))


def _bias(width: int) -> _Reals:
    """Return numbers that float32 holds exactly, for all heads alike."""
    generator = torch.Generator().manual_seed(width + 1)
    return torch.randn(1, 1, _LENGTH, _LENGTH, generator=generator).double().numpy()


def _roundings(
    q: _Reals, k: _Reals, v: _Reals, g: _Reals, *, bias: _Reals | None, half: Format, is_causal: bool
) -> tuple[_Reals, ...]:
    """Return the terms that the roundings to halves add to the bounds of output, dq, dk, dv and, of a bias, dbias.

    Each weight, each gradient of a score and each result is rounded once, each D = Σ g o is formed from an o that has
    lost twice; one unit more covers what these do to one another and TF32, which cuts off.
    """
    n, u = k.shape[2], half.unit_roundoff
    xp = Float()
    identity = np.broadcast_to(np.eye(n), (*k.shape[:2], n, n))
    added = None if bias is None else xp.asarray(bias)
    weights = attention(xp, *(xp.asarray(x) for x in (q, k, identity)), is_causal=is_causal, bias=added)
    P: _Reals = xp.tofloat(weights.value)
    dP = np.abs(g) @ np.abs(v).swapaxes(2, 3)
    dS = P * (dP + (P * dP).sum(-1, keepdims=True)) * q.shape[3] ** -0.5
    # Below the normal numbers what is lost is a part of the smallest one, however small the weight is.
    P, dS = (np.where(P > 0, x + half.smallest_subnormal, 0) for x in (3 * u * P, 5 * u * dS))
    sums = (P @ np.abs(v), dS @ np.abs(k), dS.swapaxes(2, 3) @ np.abs(q), P.swapaxes(2, 3) @ np.abs(g))
    of_bias = () if bias is None else ((dS / q.shape[3] ** -0.5).sum((0, 1), keepdims=True),)
    return tuple(x + half.smallest_subnormal for x in (*sums, *of_bias))


def interleaved(runs: Mapping[str, Callable[[], object]], *, rounds: int, warm_up: int = 3) -> dict[str, list[float]]:
    """Return seconds of each run in each round: each runs once per round, in random order, with the L2 cache flushed.

    The GPU is kept busy until a run has been launched as a whole: its time is the GPU's, not that of Python.
    """
    for run in runs.values():
        for _ in range(warm_up):
            run()
    order = list(runs)
    found: dict[str, list[float]] = {name: [] for name in runs}
    flush = torch.empty(256 * 2**20, dtype=torch.uint8, device="cuda")
    shuffle = random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        for name in order:
            found[name].append(_time(runs[name], flush))
    return found


def _time(run: Callable[[], object], flush: torch.Tensor) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
    flush.zero_()
    torch.cuda._sleep(_LEAD_CYCLES)  # type: ignore[no-untyped-call]
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000


def spread(seconds: list[float]) -> tuple[float, float]:
    """Return the median, and half the distance between the quartiles relative to it."""
    middle = median(seconds)
    low, _, high = quantiles(seconds, n=4)
    return middle, (high - low) / 2 / middle
