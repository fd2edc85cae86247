"""A Transformer that does what the mathematics says: each operation of the contract is an attribute of this package.

`attention` is one of `BACKENDS`, which all take the same arguments and mean the same. The models run these operations:
what an operation computes after it has checked its arguments is a function of its own, which the modules call.
"""

from veriformer.impl.attention_backends import BACKENDS, DEFAULT
from veriformer.impl.attention_backends.masks import causal_mask
from veriformer.impl.cache.cached_attention import cached_attention
from veriformer.impl.cache.kv_cache import kv_cache
from veriformer.impl.generation.beam_search import beam_search
from veriformer.impl.generation.greedy import greedy
from veriformer.impl.generation.top_k import top_k_filter
from veriformer.impl.generation.top_p import top_p_filter
from veriformer.impl.layers.activations import gelu, silu
from veriformer.impl.layers.dropout import dropout
from veriformer.impl.layers.feed_forward import feed_forward, mlp
from veriformer.impl.layers.layer_norm import layer_norm
from veriformer.impl.layers.linear_attention import linear_attention
from veriformer.impl.layers.lm_head import lm_head
from veriformer.impl.layers.mixture_of_experts import mixture_of_experts
from veriformer.impl.layers.multi_head_attention import multi_head_attention
from veriformer.impl.layers.residual import residual
from veriformer.impl.layers.rms_norm import rms_norm
from veriformer.impl.layers.swiglu import swiglu
from veriformer.impl.layers.token_embedding import token_embedding
from veriformer.impl.layers.transformer_block import transformer_block
from veriformer.impl.layers.xavier import xavier_normal
from veriformer.impl.losses.calibration import expected_calibration_error
from veriformer.impl.losses.cross_entropy import cross_entropy
from veriformer.impl.losses.masked_lm import masked_lm_loss
from veriformer.impl.losses.mse_loss import mse_loss
from veriformer.impl.losses.perplexity import perplexity
from veriformer.impl.losses.smoothing import smooth_labels
from veriformer.impl.models.decoder import causal_lm
from veriformer.impl.models.encoder import masked_lm
from veriformer.impl.models.encoder_decoder import seq2seq_lm
from veriformer.impl.ops.logsumexp import logsumexp
from veriformer.impl.ops.softmax import softmax
from veriformer.impl.ops.temperature import temperature_scale
from veriformer.impl.optimization.accumulation import accumulate_gradients
from veriformer.impl.optimization.adam import adam, adamw
from veriformer.impl.optimization.clipping import clip_grad_norm
from veriformer.impl.optimization.gradient_descent import gradient_descent
from veriformer.impl.optimization.momentum import sgd_momentum
from veriformer.impl.optimization.schedules import noam, warmup, warmup_cosine
from veriformer.impl.positions.alibi import alibi_bias, alibi_slopes
from veriformer.impl.positions.rope import rope
from veriformer.impl.positions.sinusoidal import sinusoidal_encoding
from veriformer.impl.positions.t5 import t5_relative_position_bucket
from veriformer.impl.text.bpe import bpe_encode, bpe_train
from veriformer.impl.text.unigram import unigram_segment

attention = BACKENDS[DEFAULT]

__all__ = [
    "BACKENDS",
    "accumulate_gradients",
    "adam",
    "adamw",
    "alibi_bias",
    "alibi_slopes",
    "attention",
    "beam_search",
    "bpe_encode",
    "bpe_train",
    "cached_attention",
    "causal_lm",
    "causal_mask",
    "clip_grad_norm",
    "cross_entropy",
    "dropout",
    "expected_calibration_error",
    "feed_forward",
    "gelu",
    "gradient_descent",
    "greedy",
    "kv_cache",
    "layer_norm",
    "linear_attention",
    "lm_head",
    "logsumexp",
    "masked_lm",
    "masked_lm_loss",
    "mixture_of_experts",
    "mlp",
    "mse_loss",
    "multi_head_attention",
    "noam",
    "perplexity",
    "residual",
    "rms_norm",
    "rope",
    "seq2seq_lm",
    "sgd_momentum",
    "silu",
    "sinusoidal_encoding",
    "smooth_labels",
    "softmax",
    "swiglu",
    "t5_relative_position_bucket",
    "temperature_scale",
    "token_embedding",
    "top_k_filter",
    "top_p_filter",
    "transformer_block",
    "unigram_segment",
    "warmup",
    "warmup_cosine",
    "xavier_normal",
]
