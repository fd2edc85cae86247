"""The operations of the contract as records, in the contract's order."""

from veriformer.verify.operations.attention.attention.record import ATTENTION
from veriformer.verify.operations.attention.cached_attention.record import CACHED_ATTENTION
from veriformer.verify.operations.attention.causal_mask import CAUSAL_MASK
from veriformer.verify.operations.attention.kv_cache.record import KV_CACHE
from veriformer.verify.operations.attention.linear_attention.record import LINEAR_ATTENTION
from veriformer.verify.operations.attention.multi_head_attention.record import MULTI_HEAD_ATTENTION
from veriformer.verify.operations.generation.beam_search.record import BEAM_SEARCH
from veriformer.verify.operations.generation.bpe_encode import BPE_ENCODE
from veriformer.verify.operations.generation.bpe_train import BPE_TRAIN
from veriformer.verify.operations.generation.greedy import GREEDY
from veriformer.verify.operations.generation.top_k_filter.record import TOP_K_FILTER
from veriformer.verify.operations.generation.top_p_filter.record import TOP_P_FILTER
from veriformer.verify.operations.generation.unigram_segment import UNIGRAM_SEGMENT
from veriformer.verify.operations.layers.dropout import DROPOUT
from veriformer.verify.operations.layers.feed_forward import FEED_FORWARD
from veriformer.verify.operations.layers.gelu import GELU
from veriformer.verify.operations.layers.layer_norm import LAYER_NORM
from veriformer.verify.operations.layers.lm_head import LM_HEAD
from veriformer.verify.operations.layers.mixture_of_experts.record import MIXTURE_OF_EXPERTS
from veriformer.verify.operations.layers.mlp import MLP
from veriformer.verify.operations.layers.mse_loss import MSE_LOSS
from veriformer.verify.operations.layers.residual import RESIDUAL
from veriformer.verify.operations.layers.rms_norm import RMS_NORM
from veriformer.verify.operations.layers.silu import SILU
from veriformer.verify.operations.layers.swiglu import SWIGLU
from veriformer.verify.operations.layers.token_embedding import TOKEN_EMBEDDING
from veriformer.verify.operations.layers.transformer_block.record import TRANSFORMER_BLOCK
from veriformer.verify.operations.layers.xavier_normal import XAVIER_NORMAL
from veriformer.verify.operations.optimization.accumulate_gradients import ACCUMULATE_GRADIENTS
from veriformer.verify.operations.optimization.adam import ADAM
from veriformer.verify.operations.optimization.adamw import ADAMW
from veriformer.verify.operations.optimization.clip_grad_norm.record import CLIP_GRAD_NORM
from veriformer.verify.operations.optimization.gradient_descent import GRADIENT_DESCENT
from veriformer.verify.operations.optimization.noam import NOAM
from veriformer.verify.operations.optimization.sgd_momentum import SGD_MOMENTUM
from veriformer.verify.operations.optimization.warmup import WARMUP
from veriformer.verify.operations.optimization.warmup_cosine import WARMUP_COSINE
from veriformer.verify.operations.positions.alibi_bias import ALIBI_BIAS
from veriformer.verify.operations.positions.alibi_slopes import ALIBI_SLOPES
from veriformer.verify.operations.positions.rope.record import ROPE
from veriformer.verify.operations.positions.sinusoidal_encoding import SINUSOIDAL_ENCODING
from veriformer.verify.operations.positions.t5_relative_position_bucket import T5_RELATIVE_POSITION_BUCKET
from veriformer.verify.operations.scores.cross_entropy.record import CROSS_ENTROPY
from veriformer.verify.operations.scores.expected_calibration_error import EXPECTED_CALIBRATION_ERROR
from veriformer.verify.operations.scores.logsumexp import LOGSUMEXP
from veriformer.verify.operations.scores.masked_lm_loss import MASKED_LM_LOSS
from veriformer.verify.operations.scores.perplexity import PERPLEXITY
from veriformer.verify.operations.scores.smooth_labels import SMOOTH_LABELS
from veriformer.verify.operations.scores.softmax import SOFTMAX
from veriformer.verify.operations.scores.temperature_scale import TEMPERATURE_SCALE

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
