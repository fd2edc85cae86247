"""FlashAttention by its kernels: which of them run, on what, and with which arguments."""

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import triton
from torch import Tensor

from veriformer.impl.attention_backends.dropout import dropout_scale
from veriformer.impl.attention_backends.flash.backward import key_gradients, query_gradients, row_products
from veriformer.impl.attention_backends.flash.bias import bias_gradients
from veriformer.impl.attention_backends.flash.forward import forward
from veriformer.impl.attention_backends.flash.launch import Blocks, Launch, padded

INTERPRETED = not isinstance(forward, triton.JITFunction)
_LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class Plan:
    """All that the passes must agree on, apart from tensors."""

    is_causal: bool
    window: int | None
    scale: float
    softcap: float | None
    dropout_p: float
    launch: Launch


class Kernels:
    """The kernels with what they share already filled in."""

    def __init__(
        self, plan: Plan, q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, mask: Tensor | None,
        seed: Tensor | None,
    ) -> None:  # fmt: skip
        self.plan, self.q, self.k, self.v, self.bias, self.mask, self.seed = plan, q, k, v, bias, mask, seed
        self.B, self.H, self.n_q, self.d_k = q.shape
        self.G, self.n_k, self.d_v = v.shape[1:]
        # A kernel wants a pointer for what is absent too, and never reads it.
        self.absent = q.new_empty(1, dtype=torch.uint8)

    def forward(self) -> tuple[Tensor, Tensor]:
        """Return the output, not yet in the dtype of the call, and each row's log-sum-exp in base 2."""
        o = self._result(self.B, self.H, self.n_q, self.d_v)
        lse = self._per_row()
        blocks = self.plan.launch.forward
        self._run(
            forward, (self.B * self.H, triton.cdiv(self.n_q, blocks.rows)), blocks,
            Q=self.q, K=self.k, V=self.v, O=o, LSE=lse, **self._scores(), **self._width(),
        )  # fmt: skip
        return o, lse

    def row_products(self, o: Tensor, g: Tensor) -> Tensor:
        """Return `D [B, H, n_q]`."""
        D = self._per_row()
        rows = 16 if INTERPRETED else 64
        self._run(
            row_products, (self.B * self.H, triton.cdiv(self.n_q, rows)), None,
            O=o, G=g, D=D, **_strides("g", g, "bhnd"), H=self.H, n_q=self.n_q, d_v=self.d_v, WIDEN=INTERPRETED,
            M=rows, D_V=padded(self.d_v),
        )  # fmt: skip
        return D

    def query_gradients(self, g: Tensor, lse: Tensor, D: Tensor) -> Tensor:
        """Return the gradient of `q`."""
        dq = self._result(*self.q.shape)
        blocks = self.plan.launch.to_queries
        self._run(
            query_gradients, (self.B * self.H, triton.cdiv(self.n_q, blocks.rows)), blocks,
            Q=self.q, K=self.k, V=self.v, G=g, LSE=lse, D=D, DQ=dq, scale=self.plan.scale,
            **_strides("g", g, "bhnd"), **self._scores(), **self._width(),
        )  # fmt: skip
        return dq.to(self.q.dtype)

    def key_gradients(self, g: Tensor, lse: Tensor, D: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of `k` and `v`."""
        dk, dv = self._result(*self.k.shape), self._result(*self.v.shape)
        blocks = self.plan.launch.to_keys
        self._run(
            key_gradients, (self.B * self.G, triton.cdiv(self.n_k, blocks.cols)), blocks,
            Q=self.q, K=self.k, V=self.v, G=g, LSE=lse, D=D, DK=dk, DV=dv, scale=self.plan.scale,
            **_strides("g", g, "bhnd"), **self._scores(), **self._width(),
        )  # fmt: skip
        return dk.to(self.q.dtype), dv.to(self.q.dtype)

    def bias_gradients(self, g: Tensor, lse: Tensor, D: Tensor) -> Tensor:
        """Return the gradient of `bias`, in its shape."""
        assert self.bias is not None
        dbias = self._memory(self.bias.shape, torch.float32)
        B_bias, H_bias, rows, cols = self.bias.shape
        blocks = self.plan.launch.to_bias
        arguments = self._scores() | {"WIDEN": INTERPRETED}
        del arguments["BIASED"]
        self._run(
            bias_gradients, (B_bias * H_bias, triton.cdiv(rows, blocks.rows), triton.cdiv(cols, blocks.cols)), blocks,
            Q=self.q, K=self.k, V=self.v, G=g, LSE=lse, D=D, DBIAS=dbias, B=self.B, B_BIAS=B_bias, H_BIAS=H_bias,
            ONE_ROW=rows == 1, ONE_COL=cols == 1, D_K=padded(self.d_k), D_V=padded(self.d_v),
            **_strides("g", g, "bhnd"), **arguments,
        )  # fmt: skip
        return dbias

    def _result(self, *shape: int) -> Tensor:
        """Return memory for a result; the interpreter would cut off the digits that bfloat16 lacks, not round them."""
        return self._memory(shape, torch.float32 if INTERPRETED else self.q.dtype)

    def _per_row(self) -> Tensor:
        return self._memory((self.B, self.H, self.n_q), torch.float32)

    def _memory(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Return memory that a kernel fills; all of it is contiguous."""
        return torch.empty(shape, dtype=dtype, device=self.q.device)

    def _scores(self) -> dict[str, Any]:
        """Return all that says how scores are formed and which of them are seen."""
        plan, bias, mask = self.plan, self.bias, self.mask
        full = (self.B, self.H, self.n_q, self.n_k)
        cap = plan.softcap
        return {
            "BIAS": self.absent if bias is None else bias,
            "MASK": self.absent if mask is None else mask,
            "SEED": self.absent if self.seed is None else self.seed,
            **_strides("q", self.q, "bhnd"),
            **_strides("k", self.k, "bhnd"),
            **_strides("v", self.v, "bhnd"),
            **_strides("bias", None if bias is None else bias.expand(full), "bhij"),
            **_strides("mask", None if mask is None else mask.expand(full), "bhij"),
            "H": self.H,
            "GROUP": self.H // self.G,
            "n_q": self.n_q,
            "n_k": self.n_k,
            "d_k": self.d_k,
            "d_v": self.d_v,
            "shift": self.n_k - self.n_q,
            "window": min(plan.window or 0, self.n_q + self.n_k),
            "factor": plan.scale * _LOG2_E if cap is None else plan.scale / cap,
            "cap": 0.0 if cap is None else cap * _LOG2_E,
            "drop_p": plan.dropout_p,
            "dropout_scale": dropout_scale(plan.dropout_p),
            "CAUSAL": plan.is_causal,
            "WINDOWED": plan.is_causal and plan.window is not None,
            "CAPPED": cap is not None,
            "BIASED": bias is not None,
            "MASKED": mask is not None,
            "DROPPED": plan.dropout_p > 0,
        }

    def _width(self) -> dict[str, Any]:
        """Return how the widths of the heads fill the tiles."""
        D_K, D_V = padded(self.d_k), padded(self.d_v)
        return {
            "D_K": D_K,
            "D_V": D_V,
            "PADDED": (self.d_k, self.d_v) != (D_K, D_V),
            "WIDEN": INTERPRETED,
        }

    def _run(self, kernel: Any, grid: tuple[int, ...], blocks: Blocks | None, **arguments: Any) -> None:
        sizes = {} if blocks is None else {"M": blocks.rows, "N": blocks.cols}
        with _on(self.q.device), _unexcited():
            kernel[grid](**arguments, **sizes, **self._options(blocks))

    def _options(self, blocks: Blocks | None) -> dict[str, int]:
        """Return the warps of a program, and the tiles loaded ahead: of a mask or a bias there are tiles, too."""
        if blocks is None:
            return {}
        further = self.mask is not None or self.bias is not None
        return {"num_warps": blocks.warps, "num_stages": max(1, blocks.stages - further)}


def _strides(name: str, x: Tensor | None, axes: str) -> dict[str, int]:
    strides = (0,) * len(axes) if x is None else x.stride()
    return {f"{name}_{axis}": stride for axis, stride in zip(axes, strides, strict=True)}


def _on(device: torch.device) -> AbstractContextManager[object]:
    """Triton launches on the current device, which need not be that of the tensors."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _unexcited() -> AbstractContextManager[object]:
    """The interpreter computes with NumPy, which warns of NaN and overflow in numbers that are hidden afterwards."""
    return np.errstate(all="ignore") if INTERPRETED else nullcontext()
