"""Linear attention in three forms that mean the same: all scores, chunks, and one token after the other."""

from collections.abc import Callable

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.precision import upcast

CHUNK = 64
"""Tokens per chunk: enough to keep matrix products busy, few enough for their square to be small."""


def linear_attention(q: Tensor, k: Tensor, v: Tensor, *, feature_map: str = "elu+1", is_causal: bool = False) -> Tensor:
    r"""Attend with the weights $\phi(q_i) \cdot \phi(k_j)$, normalised over the keys that a query sees.

    $$O = \frac{\phi(Q)\, (\phi(K)^\top V)}{\phi(Q)\, (\phi(K)^\top \mathbf 1)}, \quad \phi(x) = \mathrm{elu}(x) + 1$$

    The products on the right are formed first, so that cost is linear in the length: not causal, one sum over all keys;
    causal (aligned at the bottom right), the sums $S$ and $z$ over the chunks before, and the scores within a chunk.
    `parallel`, `chunked` and `recurrent` are the causal forms by themselves. A query without a key gives zeros.

    Shapes: `q [B, H, n_q, d]`, `k [B, H, n_k, d]`, `v [B, H, n_k, d_v]` → `[B, H, n_q, d_v]`. Dtypes: float64, float32,
    bfloat16, float16, all the same; halves are computed in float32. Raises `ValueError` for shapes that do not match
    and unknown feature maps, `TypeError` for wrong or mixed dtypes. Equation 45.
    """
    _check(q, k, v, feature_map)
    if checks.flag("is_causal", is_causal):
        poisoned = any(checks.can_read_values(x) and not bool(x.isfinite().all()) for x in (k, v))
        return _causal(_one_by_one if poisoned else _in_chunks, q, k, v)
    if k.shape[2] == 0:
        return q @ k.mT @ v  # sums over nothing
    phi_q, phi_k = (_elu_plus_one(upcast(x)) for x in (q, k))
    S = phi_k.mT @ upcast(v)  # [B, H, d, d_v]
    z = phi_k.sum(2, keepdim=True).mT  # [B, H, d, 1]
    return (phi_q @ S / (phi_q @ z)).to(q.dtype)


def parallel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute causal linear attention from all scores at once, as the formula reads: O(n_q · n_k) time and memory."""
    _check(q, k, v, "elu+1")
    return _causal(_at_once, q, k, v)


def chunked(q: Tensor, k: Tensor, v: Tensor, *, chunk: int = CHUNK) -> Tensor:
    """Compute causal linear attention in chunks: O(n · chunk) time, with matrix products throughout."""
    _check(q, k, v, "elu+1")
    length = checks.integer("chunk", chunk, minimum=1)
    return _causal(lambda *state: _in_chunks(*state, chunk=length), q, k, v)


def recurrent(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Compute causal linear attention token by token: O(n) time, a state of `d × (d_v + 1)` numbers per head."""
    _check(q, k, v, "elu+1")
    return _causal(_one_by_one, q, k, v)


Square = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From features of queries and keys of n tokens, their values, and the sums S and z over all keys before them, to the
numerator and the denominator of every query."""


def _causal(square: Square, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Reduce bottom-right causality to a square: earlier keys are a first state, earlier queries see nothing."""
    n_q, n_k = q.shape[2], k.shape[2]
    blind, before = max(0, n_q - n_k), max(0, n_k - n_q)
    phi_q, phi_k, v_ = _elu_plus_one(upcast(q[:, :, blind:])), _elu_plus_one(upcast(k)), upcast(v)
    S = phi_k[:, :, :before].mT @ v_[:, :, :before]  # [B, H, d, d_v]
    z = phi_k[:, :, :before].sum(2).unsqueeze(-1)  # [B, H, d, 1]
    numerator, denominator = square(phi_q, phi_k[:, :, before:], v_[:, :, before:], S, z)
    o = (numerator / denominator).to(q.dtype)
    return o if not blind else torch.cat([o.new_zeros(*q.shape[:2], blind, v.shape[3]), o], 2)


def _at_once(phi_q: Tensor, phi_k: Tensor, v: Tensor, S: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    A = (phi_q @ phi_k.mT).tril()  # [B, H, n, n]
    return phi_q @ S + A @ v, phi_q @ z + A.sum(-1, keepdim=True)


def _in_chunks(
    phi_q: Tensor, phi_k: Tensor, v: Tensor, S: Tensor, z: Tensor, *, chunk: int = CHUNK
) -> tuple[Tensor, Tensor]:
    parts = []
    # Split once: in backward the gradients of pieces are joined, while each slice would write one of the whole length.
    for q_c, k_c, v_c in zip(*(torch.split(x, chunk, dim=2) for x in (phi_q, phi_k, v)), strict=True):
        parts.append(_at_once(q_c, k_c, v_c, S, z))
        S = S + k_c.mT @ v_c
        z = z + k_c.sum(2).unsqueeze(-1)
    numerators, denominators = zip(*parts, strict=True)
    return torch.cat(numerators, 2), torch.cat(denominators, 2)


def _one_by_one(phi_q: Tensor, phi_k: Tensor, v: Tensor, S: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    """Compute token by token: later tokens, NaN included, are unread when a query is answered."""
    return _in_chunks(phi_q, phi_k, v, S, z, chunk=1)


def _elu_plus_one(x: Tensor) -> Tensor:
    """Compute x + 1 above 0, e^x below: `elu(x) + 1` would lose digits to the 1; at 0 the slope is 1, once."""
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _check(q: Tensor, k: Tensor, v: Tensor, feature_map: str) -> None:
    for name, x in (("q", q), ("k", k), ("v", v)):
        if checks.tensor(name, x).ndim != 4:
            checks.raise_for(name, "rank 4, [batch, heads, length, width]", f"shape {tuple(x.shape)}", "reshape it")
    checks.same_dtype_and_device({"q": q, "k": k, "v": v})
    B, H, _, d = q.shape
    if d == 0:
        checks.raise_for("q", "a width d of 1 or more", f"shape {tuple(q.shape)}", "give the queries some coordinates")
    if k.shape != (B, H, k.shape[2], d):
        expected = f"shape [{B}, {H}, n_k, {d}], to fit q (there are no grouped heads here)"
        checks.raise_for("k", expected, f"shape {tuple(k.shape)}", "match it to q")
    if v.shape[:3] != k.shape[:3]:
        expected = f"shape {[*k.shape[:3], 'd_v']}, to fit k"
        checks.raise_for("v", expected, f"shape {tuple(v.shape)}", "give each key its value")
    checks.choice("feature_map", feature_map, ("elu+1",))
