"""The entry to the Triton kernels, which imports Triton only when attention is called."""

from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.attention_backends.arguments import Attention, backend
from veriformer.impl.attention_backends.call import Call
from veriformer.impl.attention_backends.flash.availability import launchable, require
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


def _expressible(call: Call) -> bool:
    narrow = max(call.q.shape[3], call.v.shape[3]) <= MAX_WIDTH
    filled = all(x.numel() > 0 for x in (call.q, call.k, call.v))
    floats = accumulation_dtype(call.q.dtype).itemsize == 4
    return narrow and filled and floats and all(launchable(x) for x in (call.q, call.k, call.v))
