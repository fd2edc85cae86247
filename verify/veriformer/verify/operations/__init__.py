"""The operations of the contract as records, in the contract's order."""

from veriformer.verify.operations.attention import ATTENTION
from veriformer.verify.operations.clipping import CLIP_GRAD_NORM
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
)
"""Every operation that the suite judges."""

__all__ = [
    "ATTENTION",
    "CAUSAL_MASK",
    "CLIP_GRAD_NORM",
    "CROSS_ENTROPY",
    "LAYER_NORM",
    "LOGSUMEXP",
    "OPERATIONS",
    "PERPLEXITY",
    "RMS_NORM",
    "SOFTMAX",
]
