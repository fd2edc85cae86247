"""Attention: over all keys, in heads, linear, and of new tokens over a cache."""

from veriformer.spec.operations.call import (
    Bools,
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

_WINDOW = Integer(default=None, least=1)
_SCALE = Number(default=None)
_SOFTCAP = Number(default=None, least=0.0)
_CAUSAL = Flag(default=False)
_KEY_HEADS = Integer(default=None)


OPERATIONS = (
    Operation(
        name="attention",
        says="Scaled dot-product attention: softmax(q kᵀ · scale + mask) v (20, 21, 22, 23, 24a, 46).\n\nIn this "
        "order: scale, soft-cap, bias, mask, softmax, dropout, values. A window keeps the latest visible keys.",
        call={"q": Floats("B G*R n_q d_k"), "k": Floats("B G n_k d_k"), "v": Floats("B G n_k d_v")},
        options={
            "mask": Bools("B? G*R? n_q? n_k?", default=None),
            "bias": Floats("B? G*R? n_q? n_k?", default=None, learned=True),
            "is_causal": _CAUSAL,
            "window": _WINDOW,
            "scale": _SCALE,
            "softcap": _SOFTCAP,
            "dropout_p": Probability(default=0.0),
            "training": Flag(default=False),
            "generator": Other(default=None),
        },
        result=Result("B G*R n_q d_v"),
        place="attention.attention",
        grown={"n": ("n_q", "n_k"), "d_k": ("d_k",), "d_v": ("d_v",)},
    ),
    Operation(
        name="multi_head_attention",
        says="Multi-head attention of x to context, or to itself (26, 27).",
        call={
            "x": Floats("B n_q d"),
            "w_q": weights("d H*d_k"),
            "w_k": weights("d G*d_k"),
            "w_v": weights("d G*d_v"),
            "w_o": weights("H*d_v o"),
        },
        options={
            "num_heads": Integer(),
            "num_kv_heads": _KEY_HEADS,
            "context": Floats("B n_k d", default=None),
            "attention_mask": Integers("B n_k", default=None, floating=True),
            "is_causal": _CAUSAL,
        },
        result=Result("B n_q o"),
        place="heads.multi_head_attention",
    ),
    Operation(
        name="linear_attention",
        says="Linear attention: φ(q) (φ(k)ᵀ v), normalised over the keys that a query sees (45).",
        call={"q": Floats("B H n_q d_k"), "k": Floats("B H n_k d_k"), "v": Floats("B H n_k d_v")},
        options={"feature_map": Choice(default="elu+1"), "is_causal": _CAUSAL},
        result=Result("B H n_q d_v"),
        place="efficient.linear_attention",
    ),
    Operation(
        name="causal_mask",
        says="Causal mask, bool [n_q, n_k]: true where j ≤ i + n_k − n_q (24a).",
        call={"n_q": Integer(least=0), "n_k": Integer(least=0)},
        options={"window": _WINDOW},
    ),
    Operation(
        name="kv_cache",
        says='Empty key-value cache with update, length, reorder and reset; "int8" quantises it (42, 43).',
        call={"batch": Integer(), "num_kv_heads": Integer(), "max_length": Integer(), "head_dim": Integer()},
        options={
            "dtype": Other(default="float32", source="torch.float32"),
            "quantization": Choice(default=None, others=("int8",)),
            "window": _WINDOW,
        },
    ),
    Operation(
        name="cached_attention",
        says="Causal attention of new tokens over a cache, to which theirs are appended first (44).",
        call={
            "q_new": Floats("B G*R n d_k"),
            "k_new": Floats("B G n d_k"),
            "v_new": Floats("B G n d_v"),
            "cache": Other(),
        },
        options={"scale": _SCALE, "softcap": _SOFTCAP},
        result=Result("B G*R n d_v"),
        beside="kv_cache",
    ),
)
