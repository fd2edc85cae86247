"""transformers under the contract's names: its operations, where they can be reached without a model.

The arguments are checked first, for a library checks few. Everything else is a call of a function or module of
the library, given the weights of the call; several architectures stand for the many that share them. Its norms and
losses, and the angles of its rotary embeddings, are computed in fp32 whatever comes in.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module, metadata
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veriformer.verify.targets import transformers_attention
from veriformer.verify.targets.argument_validation import with_validation
from veriformer.verify.targets.library_calls import by_rows, feed_forward, network, t5_buckets, with_weights

_activations: Any = import_module("transformers.activations")
_bloom: Any = import_module("transformers.models.bloom.modeling_bloom")
_cohere: Any = import_module("transformers.models.cohere.modeling_cohere")
_deberta: Any = import_module("transformers.models.deberta.modeling_deberta")
_initialization: Any = import_module("transformers.initialization")
_llama: Any = import_module("transformers.models.llama.modeling_llama")
_logits: Any = import_module("transformers.generation.logits_process")
_loss: Any = import_module("transformers.loss.loss_utils")
_mixtral: Any = import_module("transformers.models.mixtral.modeling_mixtral")
_nllb: Any = import_module("transformers.models.nllb_moe.modeling_nllb_moe")
_optimization: Any = import_module("transformers.optimization")
_rotary: Any = import_module("transformers.modeling_rope_utils")
_t5: Any = import_module("transformers.models.t5.modeling_t5")

_PAIRINGS: dict[str, tuple[Any, Any, Any]] = {
    "interleaved": (_cohere.CohereConfig, _cohere.CohereRotaryEmbedding, _cohere.apply_rotary_pos_emb),
    "half": (_llama.LlamaConfig, _llama.LlamaRotaryEmbedding, _llama.apply_rotary_pos_emb),
}
"""By pairing, the configuration, the embedding and the function that turns: Cohere's and Llama's."""

_NARROW = ("layer_norm", "rms_norm", "mixture_of_experts", "masked_lm_loss", "perplexity", "rope", "alibi_slopes")
_MODULE = "it has no module of its own for it, and uses PyTorch's"
_PYTORCHS = "it calls PyTorch's"
_TRAINERS = "a part of its Trainer's loop, not a function"
_TOKENIZERS = "its tokenizers split into words first, and are those of the tokenizers library"

CLAIMS: dict[str, Any] = {
    "dtypes": {**transformers_attention.DTYPES, **{name: ["fp32", "bf16", "fp16"] for name in _NARROW}},
    "conventions": {
        # Means are PyTorch's, 0 / 0 without any target.
        "cross_entropy.no_target": "nan",
        # Top-k keeps all that equal the last; top-p, and the router of experts, leave ties to torch.sort and
        # torch.topk.
        "choice.ties": "unspecified",
    },
    "not_provided": {
        **transformers_attention.NOT_PROVIDED,
        **dict.fromkeys(("softmax", "logsumexp", "greedy"), _PYTORCHS),
        **dict.fromkeys(("gradient_descent", "sgd_momentum", "adam", "adamw"), _PYTORCHS),
        "cross_entropy": "its losses are means or sums over classes that are given, without smoothing in the same "
        "function",
        "smooth_labels": "LabelSmoother smooths within a loss only",
        "expected_calibration_error": "it has none",
        "beam_search": "a part of generate, which takes a model and not a function",
        **dict.fromkeys(("bpe_train", "bpe_encode", "unigram_segment"), _TOKENIZERS),
        **dict.fromkeys(("clip_grad_norm", "accumulate_gradients"), _TRAINERS),
        **dict.fromkeys(("mse_loss", "dropout", "token_embedding", "lm_head"), _MODULE),
        "residual": "its layers add in place of calling anything",
        "transformer_block": "each architecture's block fixes widths, biases and norms that the contract leaves open",
        "sinusoidal_encoding": "its tables have the base 10000 only",
        "alibi_bias": "its models add slopes times the positions of keys, equal to the bias up to a constant of each "
        "row",
    },
}
_OF_EAGER = {
    **CLAIMS,
    "not_provided": {**CLAIMS["not_provided"], "cached_attention": "judged in its models, and under sdpa"},
}


def _layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """Apply DebertaLayerNorm, which always has both parameters."""
    d = x.shape[-1]
    given = {
        "weight": torch.ones(d, dtype=x.dtype) if weight is None else weight,
        "bias": torch.zeros(d, dtype=x.dtype) if bias is None else bias,
    }
    return with_weights(_deberta.DebertaLayerNorm(d, eps), given, x)


def _rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """Apply LlamaRMSNorm, which T5, Mistral and others share; it always has a weight."""
    d = x.shape[-1]
    given = torch.ones(d, dtype=x.dtype) if weight is None else weight
    return with_weights(_llama.LlamaRMSNorm(d, eps), {"weight": given}, x)


def _gelu(x: Tensor, approximate: str) -> Tensor:
    """Apply ``gelu``, or for "tanh" ``gelu_new``, the default of GPT-2."""
    out: Tensor = _activations.ACT2FN["gelu" if approximate == "none" else "gelu_new"](x)
    return out


def _network(activation: str, dropout_p: float = 0.0) -> nn.Module:
    """Return NllbMoeDenseActDense: feed-forward layer of the original Transformer, dropout on hidden values."""
    config = SimpleNamespace(d_model=1, activation_dropout=dropout_p, activation_function=activation)
    module: nn.Module = _nllb.NllbMoeDenseActDense(config, 1)
    return module


def _swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    config = SimpleNamespace(hidden_size=1, intermediate_size=1, mlp_bias=False, hidden_act="silu")
    weights = {"gate_proj.weight": w_gate.T, "up_proj.weight": w_up.T, "down_proj.weight": w_down.T}
    return with_weights(_llama.LlamaMLP(config), weights, x)


def _mixture_of_experts(
    x: Tensor, router: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, top_k: int
) -> Tensor:
    """Apply Mixtral's router before experts of NLLB's kind, since Mixtral's have a gate and no biases."""
    config = SimpleNamespace(num_experts_per_tok=int(top_k), num_local_experts=router.shape[1], hidden_size=x.shape[-1])
    rows = x.reshape(-1, x.shape[-1])
    _, gates, chosen = torch.func.functional_call(_mixtral.MixtralTopKRouter(config), {"weight": router.T}, (rows,))
    experts = [network(_network("gelu"), rows, *of_expert) for of_expert in zip(w1, b1, w2, b2, strict=True)]
    of_token = torch.stack(experts, 1)[torch.arange(len(rows))[:, None], chosen]  # [tokens, top_k, d_out]
    out: Tensor = (gates.to(x.dtype)[..., None] * of_token).sum(1)
    return out.reshape(*x.shape[:-1], -1)


def _xavier_normal(n_in: int, n_out: int, generator: torch.Generator | None) -> Tensor:
    out: Tensor = _initialization.xavier_normal_(torch.empty(n_in, n_out), generator=generator)
    return out


def _masked_lm_loss(logits: Tensor, labels: Tensor, *, ignore_index: int) -> Tensor:
    loss: Tensor = _loss.ForMaskedLMLoss(logits, labels, logits.shape[-1], ignore_index=ignore_index)
    return loss.to(logits.dtype)


def _perplexity(logits: Tensor, target: Tensor, ignore_index: int) -> Tensor:
    """Return exp of the library's causal loss; ``shift_labels`` marks labels that are shifted already."""
    loss: Tensor = _loss.ForCausalLMLoss(
        logits, target, logits.shape[-1], ignore_index=ignore_index, shift_labels=target
    )
    return loss.exp().to(logits.dtype)


def _temperature_scale(logits: Tensor, temperature: float) -> Tensor:
    return F.softmax(_logits.TemperatureLogitsWarper(float(temperature))(None, logits), -1)


def _top_k_filter(logits: Tensor, k: int) -> Tensor:
    """Apply TopKLogitsWarper; warpers take ids before scores, and these read none."""
    return by_rows(partial(_logits.TopKLogitsWarper(int(k)), None), logits)


def _top_p_filter(logits: Tensor, p: float) -> Tensor:
    return by_rows(partial(_logits.TopPLogitsWarper(float(p)), None), logits)


def _rate(schedule: Any, step: int, lr: float, *arguments: int) -> float:
    """Return lr times the schedule's factor at a step, as LambdaLR computes it."""
    optimizer = torch.optim.SGD([torch.zeros(1)], lr)
    factor: float = schedule(optimizer, *arguments).lr_lambdas[0](step)
    return lr * factor


def _warmup(step: int, *, max_lr: float, warmup_steps: int) -> float:
    return _rate(_optimization.get_constant_schedule_with_warmup, step, max_lr, warmup_steps)


def _warmup_cosine(step: int, *, max_lr: float, warmup_steps: int, total_steps: int) -> float:
    return _rate(_optimization.get_cosine_schedule_with_warmup, step, max_lr, warmup_steps, total_steps)


def _noam(step: int, *, d_model: int, warmup_steps: int) -> float:
    """Return the library's inverse square root schedule with the peak (d·w)^−½ at the end of the warm-up."""
    peak = (d_model * warmup_steps) ** -0.5
    return _rate(_optimization.get_inverse_sqrt_schedule, step, peak, warmup_steps)


def _rope(x: Tensor, positions: Tensor, *, base: float, pairing: str, scaling: tuple[str, float] | None) -> Tensor:
    """Rotate by the library's RoPE of that pairing: positions [N, n], features [N, 1, n, d]."""
    n, d = x.shape[-2:]
    config_of, embedding_of, rotate = _PAIRINGS[pairing]
    parameters = {"rope_type": "default", "rope_theta": float(base)}
    if scaling is not None and scaling[0] == "linear":
        parameters |= {"rope_type": "linear", "factor": float(scaling[1])}
    embedding = embedding_of(_config(config_of, d, parameters))
    if scaling is not None and scaling[0] == "ntk":
        embedding.inv_freq = _ntk(config_of, d, parameters, float(scaling[1]))
    rows = x.reshape(-1, 1, n, d)
    cos, sin = embedding(x, positions.expand(x.shape[:-1]).reshape(-1, n))
    out: Tensor = rotate(rows, rows, cos, sin)[0]
    return out.reshape(x.shape)


def _config(config_of: Any, d: int, parameters: dict[str, Any], **options: Any) -> Any:
    config = config_of(hidden_size=d, num_attention_heads=1, rope_parameters=parameters, **options)
    config.head_dim = d
    return config


def _ntk(config_of: Any, d: int, parameters: dict[str, Any], s: float) -> Tensor:
    """Return frequencies of the dynamic base θ·(f·L/M − (f − 1))^(d/(d−2)), the contract's at f = 1, M = 1, L = s.

    At d = 2 the library divides by zero; the one frequency that there is has no base.
    """
    if d == 2:
        return torch.ones(1)
    config = _config(config_of, d, {**parameters, "rope_type": "dynamic", "factor": 1.0}, max_position_embeddings=1)
    frequencies: Tensor = _rotary.ROPE_INIT_FUNCTIONS["dynamic"](config, seq_len=s)[0]
    return frequencies


def _alibi_slopes(num_heads: int) -> Tensor:
    """Return the second position of Bloom's tensor, which is slope times position."""
    tensor: Tensor = _bloom.build_alibi_tensor(torch.ones(1, 2), num_heads, torch.get_default_dtype())
    return tensor[:, 0, 1]


_OPERATIONS: dict[str, Any] = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "gelu": _gelu,
    "silu": _activations.ACT2FN["silu"],
    **dict.fromkeys(("mlp", "feed_forward"), feed_forward(_network)),
    "swiglu": _swiglu,
    "mixture_of_experts": _mixture_of_experts,
    "xavier_normal": _xavier_normal,
    "masked_lm_loss": _masked_lm_loss,
    "perplexity": _perplexity,
    "temperature_scale": _temperature_scale,
    "top_k_filter": _top_k_filter,
    "top_p_filter": _top_p_filter,
    "warmup": _warmup,
    "warmup_cosine": _warmup_cosine,
    "noam": _noam,
    "rope": _rope,
    "alibi_slopes": _alibi_slopes,
    "t5_relative_position_bucket": t5_buckets(_t5.T5Attention._relative_position_bucket),
}


def _target(name: str, claims: dict[str, Any], attention: dict[str, Any]) -> SimpleNamespace:
    target = with_validation(claims, **transformers_attention.COMMON, **attention, **_OPERATIONS)
    target.__name__, target.__version__ = name, metadata.version("transformers")
    return target


SDPA = _target("transformers", CLAIMS, transformers_attention.SDPA)
EAGER = _target("transformers:eager", _OF_EAGER, transformers_attention.EAGER)
"""The implementations, which differ in attention and its caches."""
