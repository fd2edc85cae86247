"""Decoders of every kind, small and with weights large enough that every part is felt."""

from veriformer.impl.models import ModelConfig, gpt, llama

SIZES = {"vocab_size": 37, "d_model": 24, "num_layers": 2, "num_heads": 4, "max_length": 32, "init_std": 0.3}

DECODERS = {
    "gpt": gpt(**SIZES),
    "llama": llama(**SIZES, num_kv_heads=2),
    "interleaved, linear scaling": llama(**SIZES, rope_pairing="interleaved", rope_scaling=("linear", 4.0)),
    "ntk scaling": llama(**SIZES, rope_scaling=("ntk", 4.0)),
    "sinusoidal, post-norm": ModelConfig(**SIZES, position="sinusoidal", norm_placement="post"),
    "alibi, multi-query": ModelConfig(**SIZES, position="alibi", num_kv_heads=1),
    "t5 bias": ModelConfig(**SIZES, position="t5", t5_buckets=8, t5_max_distance=12, norm="rms", bias=False),
    "no position, relu": ModelConfig(**SIZES, position="none", activation="relu"),
    "window": ModelConfig(**SIZES, window=4),
    "window, alibi, grouped, soft-cap": ModelConfig(**SIZES, window=4, position="alibi", num_kv_heads=2, softcap=3.0),
    "soft-cap": ModelConfig(**SIZES, softcap=3.0),
    "experts": ModelConfig(**SIZES, num_experts=3, experts_per_token=2),
    "geglu, own head, wide heads": ModelConfig(**SIZES, activation="geglu", tied=False, head_dim=10, head_bias=True),
    "scaled residuals, xavier": ModelConfig(**SIZES, residual_scale=0.5, init="xavier", qk_gain=0.5),
}
