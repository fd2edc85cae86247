"""The operations of the contract as records, in the contract's order."""

from veriformer.verify.operations.accumulation import ACCUMULATE_GRADIENTS
from veriformer.verify.operations.activations import GELU, SILU
from veriformer.verify.operations.attention import ATTENTION
from veriformer.verify.operations.beams import BEAM_SEARCH
from veriformer.verify.operations.blocks import TRANSFORMER_BLOCK
from veriformer.verify.operations.caches import CACHED_ATTENTION, KV_CACHE
from veriformer.verify.operations.calibration import EXPECTED_CALIBRATION_ERROR
from veriformer.verify.operations.clipping import CLIP_GRAD_NORM
from veriformer.verify.operations.dropout import DROPOUT
from veriformer.verify.operations.embeddings import LM_HEAD, TOKEN_EMBEDDING
from veriformer.verify.operations.experts import MIXTURE_OF_EXPERTS
from veriformer.verify.operations.filters import GREEDY, TOP_K_FILTER, TOP_P_FILTER
from veriformer.verify.operations.heads import MULTI_HEAD_ATTENTION
from veriformer.verify.operations.initialisation import XAVIER_NORMAL
from veriformer.verify.operations.linear import LINEAR_ATTENTION
from veriformer.verify.operations.losses import CROSS_ENTROPY, PERPLEXITY
from veriformer.verify.operations.masked_lm import MASKED_LM_LOSS
from veriformer.verify.operations.masks import CAUSAL_MASK
from veriformer.verify.operations.mse_loss import MSE_LOSS
from veriformer.verify.operations.networks import FEED_FORWARD, MLP, SWIGLU
from veriformer.verify.operations.norms import LAYER_NORM, RMS_NORM
from veriformer.verify.operations.optimizers import ADAM, ADAMW, GRADIENT_DESCENT, SGD_MOMENTUM
from veriformer.verify.operations.positions import (
    ALIBI_BIAS,
    ALIBI_SLOPES,
    SINUSOIDAL_ENCODING,
    T5_RELATIVE_POSITION_BUCKET,
)
from veriformer.verify.operations.residual import RESIDUAL
from veriformer.verify.operations.rotary import ROPE
from veriformer.verify.operations.schedules import NOAM, WARMUP, WARMUP_COSINE
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
    MSE_LOSS,
    MLP,
    LAYER_NORM,
    RMS_NORM,
    RESIDUAL,
    GELU,
    SILU,
    FEED_FORWARD,
    SWIGLU,
    MIXTURE_OF_EXPERTS,
    DROPOUT,
    XAVIER_NORMAL,
    TOKEN_EMBEDDING,
    LM_HEAD,
    GRADIENT_DESCENT,
    SGD_MOMENTUM,
    ADAM,
    ADAMW,
    WARMUP,
    WARMUP_COSINE,
    NOAM,
    CLIP_GRAD_NORM,
    ACCUMULATE_GRADIENTS,
    CAUSAL_MASK,
    ATTENTION,
    MULTI_HEAD_ATTENTION,
    LINEAR_ATTENTION,
    KV_CACHE,
    CACHED_ATTENTION,
    TRANSFORMER_BLOCK,
    SINUSOIDAL_ENCODING,
    ROPE,
    ALIBI_SLOPES,
    ALIBI_BIAS,
    T5_RELATIVE_POSITION_BUCKET,
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
    "ACCUMULATE_GRADIENTS",
    "ADAM",
    "ADAMW",
    "ALIBI_BIAS",
    "ALIBI_SLOPES",
    "ATTENTION",
    "BEAM_SEARCH",
    "BPE_ENCODE",
    "BPE_TRAIN",
    "CACHED_ATTENTION",
    "CAUSAL_MASK",
    "CLIP_GRAD_NORM",
    "CROSS_ENTROPY",
    "DROPOUT",
    "EXPECTED_CALIBRATION_ERROR",
    "FEED_FORWARD",
    "GELU",
    "GRADIENT_DESCENT",
    "GREEDY",
    "KV_CACHE",
    "LAYER_NORM",
    "LINEAR_ATTENTION",
    "LM_HEAD",
    "LOGSUMEXP",
    "MASKED_LM_LOSS",
    "MIXTURE_OF_EXPERTS",
    "MLP",
    "MSE_LOSS",
    "MULTI_HEAD_ATTENTION",
    "NOAM",
    "OPERATIONS",
    "PERPLEXITY",
    "RESIDUAL",
    "RMS_NORM",
    "ROPE",
    "SGD_MOMENTUM",
    "SILU",
    "SINUSOIDAL_ENCODING",
    "SMOOTH_LABELS",
    "SOFTMAX",
    "SWIGLU",
    "T5_RELATIVE_POSITION_BUCKET",
    "TEMPERATURE_SCALE",
    "TOKEN_EMBEDDING",
    "TOP_K_FILTER",
    "TOP_P_FILTER",
    "TRANSFORMER_BLOCK",
    "UNIGRAM_SEGMENT",
    "WARMUP",
    "WARMUP_COSINE",
    "XAVIER_NORMAL",
]
