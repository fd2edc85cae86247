"""The operations of the contract as records, in the contract's order."""

from veriformer.verify.operations.attention import ATTENTION
from veriformer.verify.operations.beams import BEAM_SEARCH
from veriformer.verify.operations.blocks import TRANSFORMER_BLOCK
from veriformer.verify.operations.caches import CACHED_ATTENTION, KV_CACHE
from veriformer.verify.operations.calibration import EXPECTED_CALIBRATION_ERROR
from veriformer.verify.operations.clipping import CLIP_GRAD_NORM
from veriformer.verify.operations.filters import GREEDY, TOP_K_FILTER, TOP_P_FILTER
from veriformer.verify.operations.heads import MULTI_HEAD_ATTENTION
from veriformer.verify.operations.linear import LINEAR_ATTENTION
from veriformer.verify.operations.losses import CROSS_ENTROPY, PERPLEXITY
from veriformer.verify.operations.masked_lm import MASKED_LM_LOSS
from veriformer.verify.operations.masks import CAUSAL_MASK
from veriformer.verify.operations.norms import LAYER_NORM, RMS_NORM
from veriformer.verify.operations.scores import LOGSUMEXP, SOFTMAX
from veriformer.verify.operations.smoothing import SMOOTH_LABELS
from veriformer.verify.operations.temperature import TEMPERATURE_SCALE
from veriformer.verify.operations.texts import BPE_ENCODE, BPE_TRAIN, UNIGRAM_SEGMENT

OPERATIONS = (
    SOFTMAX,
    LOGSUMEXP,
    CROSS_ENTROPY,
    PERPLEXITY,
    SMOOTH_LABELS,
    TEMPERATURE_SCALE,
    EXPECTED_CALIBRATION_ERROR,
    MASKED_LM_LOSS,
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
    TOP_K_FILTER,
    TOP_P_FILTER,
    GREEDY,
    BEAM_SEARCH,
    BPE_TRAIN,
    BPE_ENCODE,
    UNIGRAM_SEGMENT,
)
"""Every operation that the suite judges."""

__all__ = [
    "ATTENTION",
    "BEAM_SEARCH",
    "BPE_ENCODE",
    "BPE_TRAIN",
    "CACHED_ATTENTION",
    "CAUSAL_MASK",
    "CLIP_GRAD_NORM",
    "CROSS_ENTROPY",
    "EXPECTED_CALIBRATION_ERROR",
    "GREEDY",
    "KV_CACHE",
    "LAYER_NORM",
    "LINEAR_ATTENTION",
    "LOGSUMEXP",
    "MASKED_LM_LOSS",
    "MULTI_HEAD_ATTENTION",
    "OPERATIONS",
    "PERPLEXITY",
    "RMS_NORM",
    "SMOOTH_LABELS",
    "SOFTMAX",
    "TEMPERATURE_SCALE",
    "TOP_K_FILTER",
    "TOP_P_FILTER",
    "TRANSFORMER_BLOCK",
    "UNIGRAM_SEGMENT",
]
