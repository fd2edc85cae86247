"""Layers: networks, norms, activations, embeddings and a whole block."""

from veriformer.spec.operations.call import (
    Choice,
    Flag,
    Floats,
    Integer,
    Integers,
    Number,
    Operation,
    Other,
    Probability,
    Result,
    weights,
)

EPS = (1e-5, 1e-6, 1e-8, 1e-12, 1e-7, 1e-3, 1e-4, 1e-9, 1e-10, 1e-15, 0.0, 2.0**-23, 2.0**-52)
"""Epsilons of practice, likely ones first."""

ACTIVATIONS = ("gelu", "relu", "gelu_tanh", "silu", "tanh", "sigmoid")
"""Activations of practice, likely ones first."""


def _activation(default: str) -> Choice:
    return Choice(default=default, others=("relu", "sigmoid", "tanh", "gelu"), usual=ACTIVATIONS)


def _epsilon(default: float) -> Number:
    return Number(default=default, least=0.0, usual=EPS, between=(0.0, 1e-2))


_ROWS = Floats("... d")
_GENERATOR = Other(default=None)
_TWO_LAYERS = {"x": _ROWS, "w1": weights("d f"), "b1": weights("f"), "w2": weights("f o"), "b2": weights("o")}
_GROWN = {"d": ("d",)}

OPERATIONS = (
    Operation(
        name="mse_loss",
        says="Mean over samples of ‖prediction − target‖².",
        call={"prediction": _ROWS, "target": Floats("... d", constant=True)},
        result=Result(""),
        place="layers.mse_loss",
    ),
    Operation(
        name="mlp",
        says="Two-layer perceptron: f(x W1 + b1) W2 + b2 with f relu, sigmoid, tanh or gelu (13, 14, 15, 16, 17, 18).",
        call=_TWO_LAYERS,
        options={"activation": _activation("relu")},
        result=Result("... o"),
        place="layers.mlp",
    ),
    Operation(
        name="layer_norm",
        says="LayerNorm over the last axis: γ ⊙ (x − mean(x)) / √(var(x) + ε) + β (19).",
        call={
            "x": _ROWS,
            "weight": Floats("d", default=None, learned=True),
            "bias": Floats("d", default=None, learned=True),
        },
        options={"eps": _epsilon(1e-5)},
        result=Result("... d"),
        place="layers.layer_norm",
        grown=_GROWN,
    ),
    Operation(
        name="rms_norm",
        says="RMSNorm over the last axis: γ ⊙ x / √(mean(x²) + ε).",
        call={"x": _ROWS, "weight": Floats("d", default=None, learned=True)},
        options={"eps": _epsilon(1e-6)},
        result=Result("... d"),
        place="layers.rms_norm",
        grown=_GROWN,
    ),
    Operation(
        name="residual",
        says="Residual connection: x + scale · fx (4).",
        call={"x": _ROWS, "fx": _ROWS},
        options={"scale": Number(default=1.0, drawn=(0.5, None, 1.0, 2.0, -1.0, 1 / 3, 0.0, 1e-3, 3))},
        result=Result("... d"),
        place="layers.residual",
    ),
    Operation(
        name="gelu",
        says="GELU: x · Φ(x), or its tanh approximation (37).",
        call={"x": _ROWS},
        options={"approximate": Choice(default="none", others=("tanh",), usual=("none", "tanh"))},
        result=Result("... d"),
        place="layers.gelu",
        grown=_GROWN,
    ),
    Operation(
        name="silu",
        says="SiLU: x · σ(x).",
        call={"x": _ROWS},
        result=Result("... d"),
        place="layers.silu",
        grown=_GROWN,
    ),
    Operation(
        name="feed_forward",
        says="Position-wise feed-forward network with dropout of the hidden activations (36, 47).",
        call=_TWO_LAYERS,
        options={
            "activation": _activation("gelu"),
            "dropout_p": Probability(default=0.0),
            "training": Flag(default=False),
            "generator": _GENERATOR,
        },
        result=Result("... o"),
        place="layers.feed_forward",
    ),
    Operation(
        name="swiglu",
        says="SwiGLU: (silu(x W_gate) ⊙ x W_up) W_down.",
        call={"x": _ROWS, "w_gate": weights("d f"), "w_up": weights("d f"), "w_down": weights("f o")},
        result=Result("... o"),
        place="layers.swiglu",
    ),
    Operation(
        name="mixture_of_experts",
        says="Mixture of the top_k experts (first axis of the weights) of each token, by gates renormalised over them.",
        call={
            "x": _ROWS,
            "router": weights("d E"),
            "w1": weights("E d f"),
            "b1": weights("E f"),
            "w2": weights("E f o"),
            "b2": weights("E o"),
        },
        options={"top_k": Integer(default=2, least=1, usual=(2, 1))},
        result=Result("... o"),
        place="layers.mixture_of_experts",
    ),
    Operation(
        name="dropout",
        says="Inverted dropout: each entry 0 with probability p, independently, and the others divided by 1 − p "
        "(46, 47).",
        call={"x": _ROWS, "p": Probability()},
        options={"training": Flag(default=True), "generator": _GENERATOR},
        result=Result("... d"),
        place="layers.dropout",
    ),
    Operation(
        name="xavier_normal",
        says="Xavier initialisation: [n_in, n_out] drawn from N(0, 2 / (n_in + n_out)) (49).",
        call={"n_in": Integer(), "n_out": Integer()},
        options={"generator": _GENERATOR},
        result=Result("n_in n_out"),
    ),
    Operation(
        name="token_embedding",
        says="Embedding lookup: weight[ids] (39).",
        call={"ids": Integers("...", below="V"), "weight": Floats("V d", learned=True)},
        result=Result("... d"),
        place="language.token_embedding",
    ),
    Operation(
        name="lm_head",
        says="Vocabulary logits: h Wᵀ (40).",
        call={"h": _ROWS, "weight": Floats("V d", learned=True)},
        result=Result("... V"),
        place="language.lm_head",
    ),
    Operation(
        name="transformer_block",
        says="Transformer block: attention and feed-forward network, each with a residual and a norm (32, 33, 34, 35)."
        "\n\nparams: tensors by the names w_q, w_k, w_v, w_o, w1, b1, w2, b2, norm1_weight, norm1_bias, norm2_weight, "
        "norm2_bias.",
        call={"x": Floats("B n d"), "params": Other()},
        options={
            "num_heads": Integer(),
            "num_kv_heads": Integer(default=None),
            "norm": Choice(default="pre", others=("post",)),
            "activation": _activation("gelu"),
            "is_causal": Flag(default=False),
            "attention_mask": Integers("B n", default=None, floating=True),
            "eps": _epsilon(1e-5),
        },
        result=Result("B n d"),
    ),
)
