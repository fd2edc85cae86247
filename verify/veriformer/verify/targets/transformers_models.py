"""Models of transformers, built small from their configurations with random weights; nothing is downloaded.

``transformers:gpt2`` and so on. Each is what the library builds from its own configuration class, called as the library
documents: positions are left to the caller, who gives ``position_ids`` (``generate`` makes them from the mask).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

CLAIMS: Mapping[str, Any] = {"conventions": {"causal_lm.positions": "caller"}}
"""https://huggingface.co/docs/transformers/glossary#position-ids"""

_TOKENS = {"pad_token_id": None, "bos_token_id": None, "eos_token_id": None}

_DECODER = {
    "vocab_size": 37,
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 96,
    "initializer_range": 0.3,
    **_TOKENS,
}
_GROUPED = {**_DECODER, "num_key_value_heads": 2, "head_dim": 6}
_WINDOWED = {**_GROUPED, "sliding_window": 4, "query_pre_attn_scalar": 6}
_ENCODER = {**_DECODER, "type_vocab_size": 2}
_GPT = {
    "vocab_size": 37,
    "n_embd": 24,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 96,
    "initializer_range": 0.3,
    **_TOKENS,
}


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Architecture: its operation, its two classes by name, and the sizes that make it small.

    unclaimed: whether positions follow from the mask, so that nothing need be claimed.
    """

    operation: str
    config: str
    model: str
    sizes: Mapping[str, Any]
    unclaimed: bool = False

    def build(self) -> SimpleNamespace:
        """Return the target: a model's factory under the name of its operation."""
        library = importlib.import_module("transformers")
        claims = {} if self.unclaimed else {"CLAIMS": CLAIMS}
        version = importlib.metadata.version("transformers")
        names = {"__name__": f"transformers:{self.model}", "__version__": version}
        return SimpleNamespace(**{self.operation: self._factory(library)}, **claims, **names)

    def _factory(self, library: Any) -> Callable[[], Any]:
        """Return a factory of the model; its classes are imported now, so that no row pays for it."""
        config, model = getattr(library, self.config), getattr(library, self.model)

        def make() -> Any:
            logging.getLogger("transformers").setLevel(logging.ERROR)
            return model(config(**self.sizes))

        return make


_HEADS = {"causal_lm": "ForCausalLM", "masked_lm": "ForMaskedLM", "seq2seq_lm": "ForConditionalGeneration"}
"""By operation, the end of the name of its class."""


def _of(
    operation: str, name: str, sizes: Mapping[str, Any], *, model: str = "", config: str = "", unclaimed: bool = False
) -> Architecture:
    """Return an architecture whose classes have the usual names, unless model or config is given."""
    return Architecture(
        operation=operation,
        config=f"{config or name}Config",
        model=model or f"{name}{_HEADS[operation]}",
        sizes=sizes,
        unclaimed=unclaimed,
    )


_causal, _masked, _seq2seq = (partial(_of, operation) for operation in _HEADS)

ARCHITECTURES: Mapping[str, Architecture] = {
    "gpt2": _causal("GPT2", _GPT, model="GPT2LMHeadModel"),
    "gpt_neox": _causal("GPTNeoX", {**_DECODER, "rotary_pct": 0.5, "hidden_size": 32}),
    "gptj": _causal("GPTJ", {**_GPT, "rotary_dim": 4}),
    "opt": _causal("OPT", {**_DECODER, "ffn_dim": 40, "word_embed_proj_dim": 24, "init_std": 0.3}),
    "bloom": _causal(
        "Bloom",
        {"vocab_size": 37, "hidden_size": 24, "n_layer": 2, "n_head": 3, "initializer_range": 0.3, **_TOKENS},
        unclaimed=True,
    ),
    "falcon": _causal("Falcon", {**_DECODER, "num_kv_heads": 2, "new_decoder_architecture": True}),
    "llama": _causal("Llama", _GROUPED),
    "mistral": _causal("Mistral", {**_GROUPED, "sliding_window": 4}),
    "mixtral": _causal("Mixtral", {**_GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}),
    "gemma": _causal("Gemma", _GROUPED),
    "gemma2": _causal("Gemma2", {**_WINDOWED, "attn_logit_softcapping": 2.0}),
    "gemma3": _causal(
        "Gemma3", {**_WINDOWED, "layer_types": ["sliding_attention", "full_attention"]}, config="Gemma3Text"
    ),
    "qwen2": _causal("Qwen2", _GROUPED),
    "qwen3": _causal("Qwen3", _GROUPED),
    "phi": _causal("Phi", {**_DECODER, "hidden_size": 32, "num_key_value_heads": 2}),
    "phi3": _causal("Phi3", _GROUPED),
    "olmo2": _causal("Olmo2", _GROUPED),
    "bert": _masked("Bert", _ENCODER),
    "distilbert": _masked(
        "DistilBert",
        {"vocab_size": 37, "dim": 24, "hidden_dim": 40, "n_layers": 2, "n_heads": 4, "initializer_range": 0.3},
    ),
    "albert": _masked("Albert", {**_ENCODER, "embedding_size": 16}),
    "modernbert": _masked(
        "ModernBert", {**_ENCODER, "local_attention": 6, "global_attn_every_n_layers": 2, "pad_token_id": 0}
    ),
    "t5": _seq2seq(
        "T5",
        {
            "vocab_size": 37,
            "d_model": 24,
            "d_kv": 6,
            "d_ff": 40,
            "num_layers": 2,
            "num_heads": 4,
            "relative_attention_num_buckets": 8,
            "relative_attention_max_distance": 20,
            "initializer_factor": 1.0,
            "pad_token_id": 0,
            "eos_token_id": 1,
            "decoder_start_token_id": 0,
        },
        unclaimed=True,
    ),
    "bart": _seq2seq(
        "Bart",
        {
            "vocab_size": 37,
            "d_model": 24,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 40,
            "decoder_ffn_dim": 40,
            "max_position_embeddings": 96,
            "init_std": 0.3,
            "pad_token_id": 1,
            "bos_token_id": 0,
            "eos_token_id": 2,
            "decoder_start_token_id": 2,
            "forced_eos_token_id": None,
        },
    ),
}
"""The architectures that ship, by the word after ``transformers:``."""


def build(identifier: str) -> SimpleNamespace:
    """Return the target of an architecture. Raises LookupError, which lists those that ship."""
    if identifier not in ARCHITECTURES:
        raise LookupError(f"transformers:{identifier}: expected one of {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[identifier].build()
