"""The layers of transformers as operations: its norms, activations and networks, under the contract's names.

Each is the library's own module, given the weights of the call. Its norms are computed in fp32 whatever comes in.
"""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.targets.seeding import seeded

_deberta: Any = import_module("transformers.models.deberta.modeling_deberta")
_llama: Any = import_module("transformers.models.llama.modeling_llama")
_mixtral: Any = import_module("transformers.models.mixtral.modeling_mixtral")
_nllb: Any = import_module("transformers.models.nllb_moe.modeling_nllb_moe")
_activations: Any = import_module("transformers.activations")
_initialization: Any = import_module("transformers.initialization")

_NARROW = ["fp32", "bf16", "fp16"]
DTYPES = dict.fromkeys(("layer_norm", "rms_norm", "mixture_of_experts"), _NARROW)

_MODULE = "it has no module of its own for it, and uses PyTorch's"
NOT_PROVIDED = {
    "mse_loss": _MODULE,
    "residual": "its layers add in place of calling anything",
    "dropout": _MODULE,
    "token_embedding": _MODULE,
    "lm_head": _MODULE,
    "transformer_block": "each architecture's block fixes widths, biases and norms that the contract leaves open",
}


def _with(module: nn.Module, weights: dict[str, Tensor], *arguments: Any) -> Any:
    return torch.func.functional_call(module, weights, arguments)


def _layer_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float) -> Tensor:
    """DebertaLayerNorm; it always has both parameters."""
    d = x.shape[-1]
    given = {
        "weight": torch.ones(d, dtype=x.dtype) if weight is None else weight,
        "bias": torch.zeros(d, dtype=x.dtype) if bias is None else bias,
    }
    out: Tensor = _with(_deberta.DebertaLayerNorm(d, eps), given, x)
    return out


def _rms_norm(x: Tensor, weight: Tensor | None, eps: float) -> Tensor:
    """LlamaRMSNorm, which T5, Mistral and others share; it always has a weight."""
    d = x.shape[-1]
    given = torch.ones(d, dtype=x.dtype) if weight is None else weight
    out: Tensor = _with(_llama.LlamaRMSNorm(d, eps), {"weight": given}, x)
    return out


def _gelu(x: Tensor, approximate: str) -> Tensor:
    """``gelu_new``, the default of GPT-2, is the one with tanh that is written out."""
    out: Tensor = _activations.ACT2FN["gelu" if approximate == "none" else "gelu_new"](x)
    return out


def _silu(x: Tensor) -> Tensor:
    out: Tensor = _activations.ACT2FN["silu"](x)
    return out


def _network(activation: str, dropout_p: float = 0.0) -> nn.Module:
    """NllbMoeDenseActDense: the feed-forward layer of the original Transformer, hidden values dropped."""
    config = SimpleNamespace(d_model=1, activation_dropout=dropout_p, activation_function=activation)
    module: nn.Module = _nllb.NllbMoeDenseActDense(config, 1)
    return module


def _weights(w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> dict[str, Tensor]:
    return {"fc1.weight": w1.T, "fc1.bias": b1, "fc2.weight": w2.T, "fc2.bias": b2}


def _mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, activation: str) -> Tensor:
    out: Tensor = _with(_network(activation), _weights(w1, b1, w2, b2), x)
    return out


def _feed_forward(
    x: Tensor,
    w1: Tensor,
    b1: Tensor,
    w2: Tensor,
    b2: Tensor,
    *,
    activation: str,
    dropout_p: float,
    training: bool,
    generator: torch.Generator | None,
) -> Tensor:
    module = _network(activation, float(dropout_p)).train(training)
    with seeded(generator if training else None):
        out: Tensor = _with(module, _weights(w1, b1, w2, b2), x)
    return out


def _swiglu(x: Tensor, w_gate: Tensor, w_up: Tensor, w_down: Tensor) -> Tensor:
    config = SimpleNamespace(hidden_size=1, intermediate_size=1, mlp_bias=False, hidden_act="silu")
    weights = {"gate_proj.weight": w_gate.T, "up_proj.weight": w_up.T, "down_proj.weight": w_down.T}
    out: Tensor = _with(_llama.LlamaMLP(config), weights, x)
    return out


def _mixture_of_experts(
    x: Tensor, router: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, *, top_k: int
) -> Tensor:
    """Mixtral's router before experts of NLLB's kind, since Mixtral's have a gate and no biases."""
    config = SimpleNamespace(num_experts_per_tok=int(top_k), num_local_experts=router.shape[1], hidden_size=x.shape[-1])
    rows = x.reshape(-1, x.shape[-1])
    _, gates, chosen = _with(_mixtral.MixtralTopKRouter(config), {"weight": router.T}, rows)
    experts = [_with(_network("gelu"), _weights(*of_expert), rows) for of_expert in zip(w1, b1, w2, b2, strict=True)]
    of_token = torch.stack(experts, 1)[torch.arange(len(rows))[:, None], chosen]  # [tokens, top_k, d_out]
    out: Tensor = (gates.to(x.dtype)[..., None] * of_token).sum(1)
    return out.reshape(*x.shape[:-1], -1)


def _xavier_normal(n_in: int, n_out: int, generator: torch.Generator | None) -> Tensor:
    out: Tensor = _initialization.xavier_normal_(torch.empty(n_in, n_out), generator=generator)
    return out


RAW_OPS: dict[str, Any] = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "gelu": _gelu,
    "silu": _silu,
    "mlp": _mlp,
    "feed_forward": _feed_forward,
    "swiglu": _swiglu,
    "mixture_of_experts": _mixture_of_experts,
    "xavier_normal": _xavier_normal,
}
"""By the contract's names."""
