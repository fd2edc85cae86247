"""The operations of the contract as records, in the contract's order."""

from veriformer.verify.operations.attention import ATTENTION
from veriformer.verify.operations.blocks import TRANSFORMER_BLOCK
from veriformer.verify.operations.caches import CACHED_ATTENTION, KV_CACHE
from veriformer.verify.operations.clipping import CLIP_GRAD_NORM
from veriformer.verify.operations.heads import MULTI_HEAD_ATTENTION
from veriformer.verify.operations.linear import LINEAR_ATTENTION
from veriformer.verify.operations.losses import CROSS_ENTROPY, PERPLEXITY
from veriformer.verify.operations.masks import CAUSAL_MASK
from veriformer.verify.operations.norms import LAYER_NORM, RMS_NORM
from veriformer.verify.operations.scores import LOGSUMEXP, SOFTMAX

OPERATIONS = (
    SOFTMAX,
    LOGSUMEXP,
    CROSS_ENTROPY,
    PERPLEXITY,
    LAYER_NORM,
    RMS_NORM,
    CLIP_GRAD_NORM,
    CAUSAL_MASK,
    ATTENTION,
    MULTI_HEAD_ATTENTION,
    LINEAR_ATTENTION,
    KV_CACHE,
    CACHED_ATTENTION,
    TRANSFORMER_BLOCK,
)
"""Every operation that the suite judges."""

__all__ = [
    "ATTENTION",
    "CACHED_ATTENTION",
    "CAUSAL_MASK",
    "CLIP_GRAD_NORM",
    "CROSS_ENTROPY",
    "KV_CACHE",
    "LAYER_NORM",
    "LINEAR_ATTENTION",
    "LOGSUMEXP",
    "MULTI_HEAD_ATTENTION",
    "OPERATIONS",
    "PERPLEXITY",
    "RMS_NORM",
    "SOFTMAX",
    "TRANSFORMER_BLOCK",
]
