"""Every check of the suite, prerequisites before what rests on them."""

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.families import accuracy, batch, equation, forms_of_call, purity, refusal, sensitivity
from veriformer.verify.judging.check import Check
from veriformer.verify.operations.attention import causal_mask
from veriformer.verify.operations.attention.attention import dropout as attention_dropout
from veriformer.verify.operations.attention.attention import edges as attention_edges
from veriformer.verify.operations.attention.attention import laws as attention_laws
from veriformer.verify.operations.attention.attention import long as attention_long
from veriformer.verify.operations.attention.attention import options as attention_options
from veriformer.verify.operations.attention.cached_attention import laws as cached_attention_laws
from veriformer.verify.operations.attention.kv_cache import laws as kv_cache_laws
from veriformer.verify.operations.attention.linear_attention import laws as linear_attention_laws
from veriformer.verify.operations.attention.multi_head_attention import laws as multi_head_attention_laws
from veriformer.verify.operations.generation import bpe_encode, bpe_train, greedy, unigram_segment
from veriformer.verify.operations.generation.beam_search import laws as beam_search_laws
from veriformer.verify.operations.generation.top_k_filter import laws as top_k_filter_laws
from veriformer.verify.operations.generation.top_p_filter import laws as top_p_filter_laws
from veriformer.verify.operations.layers import (
    dropout,
    feed_forward,
    gelu,
    layer_norm,
    lm_head,
    mlp,
    mse_loss,
    residual,
    rms_norm,
    silu,
    swiglu,
    token_embedding,
    xavier_normal,
)
from veriformer.verify.operations.layers.mixture_of_experts import laws as mixture_of_experts_laws
from veriformer.verify.operations.layers.transformer_block import laws as transformer_block_laws
from veriformer.verify.operations.models import causal as models_causal
from veriformer.verify.operations.models import laws as models_laws
from veriformer.verify.operations.models import source as models_source
from veriformer.verify.operations.models import training as models_training
from veriformer.verify.operations.optimization import (
    accumulate_gradients,
    adam,
    adamw,
    gradient_descent,
    noam,
    sgd_momentum,
    warmup,
    warmup_cosine,
)
from veriformer.verify.operations.optimization.clip_grad_norm import laws as clip_grad_norm_laws
from veriformer.verify.operations.positions import (
    alibi_bias,
    alibi_slopes,
    sinusoidal_encoding,
    t5_relative_position_bucket,
)
from veriformer.verify.operations.positions.rope import laws as rope_laws
from veriformer.verify.operations.scores import (
    expected_calibration_error,
    far_classes,
    logsumexp,
    masked_lm_loss,
    perplexity,
    smooth_labels,
    softmax,
    temperature_scale,
)
from veriformer.verify.operations.scores.cross_entropy import laws as cross_entropy_laws

_MODULES = (
    accuracy,
    batch,
    equation,
    forms_of_call,
    purity,
    refusal,
    sensitivity,
    causal_mask,
    attention_dropout,
    attention_edges,
    attention_laws,
    attention_long,
    attention_options,
    cached_attention_laws,
    kv_cache_laws,
    linear_attention_laws,
    multi_head_attention_laws,
    bpe_encode,
    bpe_train,
    greedy,
    unigram_segment,
    beam_search_laws,
    top_k_filter_laws,
    top_p_filter_laws,
    dropout,
    feed_forward,
    gelu,
    layer_norm,
    lm_head,
    mlp,
    mse_loss,
    residual,
    rms_norm,
    silu,
    swiglu,
    token_embedding,
    xavier_normal,
    mixture_of_experts_laws,
    transformer_block_laws,
    models_causal,
    models_laws,
    models_source,
    models_training,
    accumulate_gradients,
    adam,
    adamw,
    gradient_descent,
    noam,
    sgd_momentum,
    warmup,
    warmup_cosine,
    clip_grad_norm_laws,
    alibi_bias,
    alibi_slopes,
    sinusoidal_encoding,
    t5_relative_position_bucket,
    rope_laws,
    expected_calibration_error,
    far_classes,
    logsumexp,
    masked_lm_loss,
    perplexity,
    smooth_labels,
    softmax,
    temperature_scale,
    cross_entropy_laws,
)
_BY_SLUG: dict[str, Check] = {check.requirement.slug: check for module in _MODULES for check in module.CHECKS}

ALL: tuple[Check, ...] = tuple(_BY_SLUG[requirement.slug] for requirement in REQUIREMENTS)
"""One check per requirement, in the requirements' order."""
