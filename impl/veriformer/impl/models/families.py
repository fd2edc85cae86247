"""The families that everyone knows, as settings of the one config.

Each function returns a `ModelConfig`; what is given besides is a field of it, and stands in for the family's own value.
Raises `TypeError` for what is no field, and what `ModelConfig` raises for values that do not fit.
"""

from typing import Any

from veriformer.impl.models.config import ModelConfig


def gpt(*, vocab_size: int, d_model: int, num_layers: int, num_heads: int, **more: Any) -> ModelConfig:
    """Configure GPT-2: learned positions, pre-LayerNorm, GELU by tanh, tied head."""
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "num_layers": num_layers, "num_heads": num_heads}
    return ModelConfig(**{**sizes, "activation": "gelu_tanh", **more})


def llama(*, vocab_size: int, d_model: int, num_layers: int, num_heads: int, **more: Any) -> ModelConfig:
    """Configure Llama: rotated positions, pre-RMSNorm, SwiGLU, no biases, a head of its own."""
    family = {"position": "rope", "norm": "rms", "eps": 1e-6, "activation": "swiglu", "bias": False, "tied": False}
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "num_layers": num_layers, "num_heads": num_heads}
    return ModelConfig(**{**sizes, **family, **more})


def bert(*, vocab_size: int, d_model: int, num_layers: int, num_heads: int, **more: Any) -> ModelConfig:
    """Configure BERT: learned positions, two segments, embedding norm, post-LayerNorm, a transformed and tied head."""
    family = {"norm_placement": "post", "embedding_norm": True, "num_segments": 2, "head_transform": True}
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "num_layers": num_layers, "num_heads": num_heads}
    return ModelConfig(**{**sizes, **family, "head_bias": True, "eps": 1e-12, **more})


def t5(*, vocab_size: int, d_model: int, num_layers: int, num_heads: int, **more: Any) -> ModelConfig:
    """Configure T5: relative position biases, pre-RMSNorm, ReLU, unscaled scores, no biases; if tied, scaled logits."""
    family = {"position": "t5", "norm": "rms", "eps": 1e-6, "activation": "relu", "bias": False, "attention_scale": 1.0}
    sizes = {"vocab_size": vocab_size, "d_model": d_model, "num_layers": num_layers, "num_heads": num_heads}
    tied = more.get("tied", True)
    return ModelConfig(**{**sizes, **family, "logit_scale": d_model**-0.5 if tied else 1.0, **more})
