"""The entry to the Triton kernels, which imports Triton only when attention is called."""

from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.arguments import Attention, backend
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.flash.availability import installed, interpreting, launchable, require
from veriformer.impl.attention_backends.flash.launch import MAX_WIDTH
from veriformer.impl.attention_backends.reference import dense
from veriformer.impl.precision import accumulation_dtype


def fused(call: Call, side: int | None = None) -> Tensor:
    r"""`triton`: FlashAttention (Dao et al., 2022, 2023) in Triton kernels, with O(n) extra memory.

    They express every option, in float32, bfloat16 and float16, for heads of a width up to 256; the formula of
    `reference` computes the rest: float64, wider heads, and tensors without entries or without memory (meta and fake
    ones). Products of halves are accumulated in float32, their factors rounded to the dtype of the call; float32 is
    multiplied as float32, not as TF32. Backward forms the weights again from the log-sum-exp of each row, and adds
    nothing up between programs: equal calls give equal bits. Dropout is a function of a seed, the head, the query and
    the key (Philox), whatever the tiles are; the seed is drawn from `generator`, which must be on the tensors' device.

    Needs the package `triton` and a CUDA device, or `TRITON_INTERPRET=1` in the environment, and raises
    `UnavailableError`, which says so, where they are missing.
    """
    if not _expressible(call):
        require()
        return dense(call)
    require(call.q.device)
    from veriformer.impl.attention_backends.flash.differentiable import flash

    o: Tensor = flash(call, side)
    return o


attention = backend(fused)


def attention_in_tiles(side: int) -> Attention:
    """Return `triton` with tiles of `side × side`, a power of two from 16 on, for tests."""
    if checks.integer("side", side, minimum=16) & (side - 1):
        checks.raise_for("side", "a power of two", side, "pass 16, 32, 64 or 128")

    def compute(call: Call) -> Tensor:
        return fused(call, side)

    compute.__doc__, compute.__module__ = fused.__doc__, fused.__module__
    return backend(compute)


MAX_GROUP = 64
"""Most heads that read one key head in `attend_to_cache`: they are the rows of one tile."""


def reads_cache_in_pieces(q: Tensor, key_heads: int) -> bool:
    """Tell whether `attend_to_cache` can run on queries `q [B, H, 1, d]` and that many heads of keys of their width."""
    if not (launchable(q) and installed() and (q.is_cuda or interpreting())):
        return False
    halves_or_float32 = accumulation_dtype(q.dtype).itemsize == 4
    return halves_or_float32 and q.shape[3] <= MAX_WIDTH and q.shape[1] // key_heads <= MAX_GROUP


def attend_to_cache(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    length: Tensor,
    *,
    mask: Tensor | None = None,
    window: int | None = None,
    scale: float,
    softcap: float | None = None,
    pieces: int | None = None,
) -> Tensor:
    r"""Attend with one query per head to the first `length` keys of a cache, a number that only the device reads.

    The query stands at key `length − 1`; with `window=w` it sees the `w` latest keys. Nothing of the cache after them
    is read, and no launch depends on the length, so that one CUDA graph serves all lengths. Keys are read once for all
    heads of a group, in pieces that are put together in a fixed order: equal calls give equal bits. `pieces` is a
    power of two, by default as many as keep the card busy. There is no gradient.

    Shapes: `q [B, H, 1, d_k]`, `k [B, G, capacity, d_k]`, `v [B, G, capacity, d_v]`, `length [1]` int64 from 1 to
    capacity, `mask [B or 1, 1, 1, capacity]` bool, True where a key is real, → `[B, H, 1, d_v]`; H / G is at most
    `MAX_GROUP`, widths `MAX_WIDTH`. Dtypes: float32, bfloat16, float16, the same for q, k and v. Arguments are not
    checked, as those of a model's layers need not be; see `reads_cache_in_pieces`.
    """
    from veriformer.impl.attention_backends.flash.decoding import decode

    return decode(q, k, v, length, mask, window, scale, softcap, pieces)


def _expressible(call: Call) -> bool:
    narrow = max(call.q.shape[3], call.v.shape[3]) <= MAX_WIDTH
    filled = all(x.numel() > 0 for x in (call.q, call.k, call.v))
    floats = accumulation_dtype(call.q.dtype).itemsize == 4
    return narrow and filled and floats and all(launchable(x) for x in (call.q, call.k, call.v))
