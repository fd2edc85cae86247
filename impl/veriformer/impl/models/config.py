"""Flat configuration of every model in this package."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from veriformer.impl import checks
from veriformer.impl.attention_backends import BACKENDS, DEFAULT

POSITIONS = ("learned", "sinusoidal", "rope", "alibi", "t5", "none")
NORMS = ("layer", "rms")
NORM_PLACEMENTS = ("pre", "post")
ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "swiglu", "geglu")
INITIALIZATIONS = ("gpt2", "xavier")
PAIRINGS = ("interleaved", "half")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """The shape of a Transformer. Every field is a plain value; every combination that makes sense is allowed.

    Sizes: `d_model` is the width of the residual stream, `intermediate_size` that inside the feed-forward network
    (default 4 · `d_model`, with `swiglu` and `geglu` two thirds of it), `head_dim` defaults to `d_model / num_heads`,
    `num_kv_heads` (grouped queries; 1 is multi-query) to `num_heads`, `num_decoder_layers` (encoder–decoder only) to
    `num_layers`. `max_length` bounds learned positions and caches.

    Position: `position` is one of `POSITIONS`; `rope_*` as in the operation `rope`, `t5_*` as in
    `t5_relative_position_bucket`. Attention: `window`, `softcap` and `attention_scale` as in the operation `attention`;
    `attention` names the backend that computes it, `"sdpa"` being PyTorch's kernels wherever they know how.
    Blocks: `residual_scale` multiplies what a sublayer adds; `num_experts` makes the network a mixture of `gelu`
    experts. Head: `tied` shares the embedding; `logit_scale` multiplies the logits; `head_transform` puts BERT's
    Linear–GELU–LayerNorm before it. Initialisation: `xavier`, or `gpt2` (`init_std`, residual projections divided by
    the square root of their number); `qk_gain` multiplies the deviation of the query and key projections.

    Raises `ValueError` or `TypeError`, naming the field and what to do, for values that make no model.
    """

    vocab_size: int
    d_model: int
    num_layers: int
    num_heads: int
    max_length: int = 1024
    num_decoder_layers: int | None = None
    num_kv_heads: int | None = None
    head_dim: int | None = None
    intermediate_size: int | None = None
    position: str = "learned"
    rope_base: float = 10000.0
    rope_pairing: str = "half"
    rope_scaling: tuple[str, float] | None = None
    t5_buckets: int = 32
    t5_max_distance: int = 128
    window: int | None = None
    softcap: float | None = None
    attention: str = DEFAULT
    attention_scale: float | None = None
    norm: str = "layer"
    norm_placement: str = "pre"
    eps: float = 1e-5
    embedding_norm: bool = False
    num_segments: int = 0
    activation: str = "gelu"
    num_experts: int = 0
    experts_per_token: int = 2
    bias: bool = True
    residual_scale: float = 1.0
    tied: bool = True
    head_bias: bool = False
    head_transform: bool = False
    logit_scale: float = 1.0
    dropout: float = 0.0
    attention_dropout: float = 0.0
    init: str = "gpt2"
    init_std: float = 0.02
    qk_gain: float = 1.0
    activation_checkpointing: bool = False

    def __post_init__(self) -> None:
        _check_sizes(self)
        _check_numbers(self)
        _check_choices(self)
        _check_combinations(self)

    @property
    def kv_heads(self) -> int:
        """Number of key heads."""
        return self.num_heads if self.num_kv_heads is None else self.num_kv_heads

    @property
    def d_k(self) -> int:
        """The width of a head."""
        return self.d_model // self.num_heads if self.head_dim is None else self.head_dim

    @property
    def d_ff(self) -> int:
        """The width inside the feed-forward network."""
        if self.intermediate_size is not None:
            return self.intermediate_size
        return 8 * self.d_model // 3 if self.gated else 4 * self.d_model

    @property
    def gated(self) -> bool:
        """True if the network multiplies two projections (SwiGLU, GEGLU)."""
        return self.activation in ("swiglu", "geglu")

    @property
    def decoder_layers(self) -> int:
        """Number of layers in the decoder of an encoder–decoder."""
        return self.num_layers if self.num_decoder_layers is None else self.num_decoder_layers

    def replace(self, **changes: Any) -> "ModelConfig":
        """Return a copy with some fields changed, checked anew."""
        return dataclasses.replace(self, **changes)


def _check_sizes(c: ModelConfig) -> None:
    for name in ("vocab_size", "d_model", "num_layers", "num_heads", "max_length", "experts_per_token"):
        checks.integer(name, getattr(c, name), minimum=1)
    for name in ("num_decoder_layers", "num_kv_heads", "head_dim", "intermediate_size", "window"):
        if getattr(c, name) is not None:
            checks.integer(name, getattr(c, name), minimum=1)
    for name in ("num_segments", "num_experts", "t5_buckets", "t5_max_distance"):
        checks.integer(name, getattr(c, name), minimum=0)
    if c.head_dim is None and c.d_model % c.num_heads:
        checks.raise_for("num_heads", f"a divisor of d_model={c.d_model}", c.num_heads, "change one, or give head_dim")
    if c.num_heads % c.kv_heads:
        checks.raise_for("num_kv_heads", f"a divisor of num_heads={c.num_heads}", c.kv_heads, "change one of the two")


def _check_numbers(c: ModelConfig) -> None:
    for name in ("dropout", "attention_dropout"):
        checks.probability(name, getattr(c, name))
    for name in ("eps", "init_std", "qk_gain"):
        checks.nonnegative(name, getattr(c, name))
    for name in ("residual_scale", "logit_scale"):
        checks.finite(name, getattr(c, name))
    if c.attention_scale is not None:
        checks.finite("attention_scale", c.attention_scale)
    for name in ("softcap", "rope_base"):
        value = getattr(c, name)
        if value is not None and checks.finite(name, value) <= 0:
            checks.raise_for(name, "a number above 0", value, "pass one")
    for name in ("embedding_norm", "bias", "tied", "head_bias", "head_transform", "activation_checkpointing"):
        checks.flag(name, getattr(c, name))


def _check_choices(c: ModelConfig) -> None:
    choices = {
        "position": POSITIONS,
        "norm": NORMS,
        "norm_placement": NORM_PLACEMENTS,
        "activation": ACTIVATIONS,
        "init": INITIALIZATIONS,
        "attention": tuple(BACKENDS),
        "rope_pairing": PAIRINGS,
    }
    for name, allowed in choices.items():
        if getattr(c, name) not in allowed:
            checks.raise_for(name, f"one of {allowed}", repr(getattr(c, name)), "choose one of them")
    if c.rope_scaling is not None:
        if not isinstance(c.rope_scaling, tuple | list) or len(c.rope_scaling) != 2:
            checks.raise_for(
                "rope_scaling", "None or a pair (kind, s)", c.rope_scaling, 'such as ("linear", 2.0)', TypeError
            )
        checks.choice("rope_scaling", c.rope_scaling[0], ("linear", "ntk"))
        checks.positive("rope_scaling", c.rope_scaling[1])


def _check_combinations(c: ModelConfig) -> None:
    if c.position == "rope" and c.d_k % 2:
        checks.raise_for("head_dim", "an even number with position='rope'", c.d_k, "RoPE turns pairs of coordinates")
    if c.position == "rope" and c.rope_scaling is not None and c.rope_scaling[0] == "ntk" and c.d_k == 2:
        checks.raise_for("head_dim", "4 or more with NTK scaling", 2, "the exponent d / (d - 2) has no value")
    if c.position == "sinusoidal" and c.d_model % 2:
        checks.raise_for(
            "d_model", "an even number with position='sinusoidal'", c.d_model, "sines and cosines come in pairs"
        )
    if c.position == "t5" and (c.t5_buckets % 2 or not 4 <= c.t5_buckets < 2 * c.t5_max_distance):
        expected = f"an even number from 4 to below 2 · t5_max_distance={c.t5_max_distance}"
        checks.raise_for("t5_buckets", expected, c.t5_buckets, "half of them lie in each direction")
    if c.num_experts and c.activation != "gelu":
        checks.raise_for("activation", "'gelu' with num_experts", repr(c.activation), "experts use exact GELU")
    if c.num_experts and c.experts_per_token > c.num_experts:
        advice = "a token cannot visit an expert twice"
        checks.raise_for("experts_per_token", f"at most num_experts={c.num_experts}", c.experts_per_token, advice)
