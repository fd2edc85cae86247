"""Instances of classes: constructor arguments by the names that sizes usually have, and config objects."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Mapping
from typing import Any

import torch

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Unfit

_SIZES: Mapping[str, str] = {
    "width": (
        "d_model d_in in_dim input_dim dim hidden_size hidden_dim n_embd emb_dim embed_dim embedding_dim "
        "embed_size embedding_size hidden model_dim features n_state size d dims normalized_shape d_hidden "
        "num_features num_channels channels in_features ndim input_size n_embed num_hiddens emb_size emb c dmodel "
        "units d_embed h_dim in_channels model_size d_word_vec model_dimension model_dims features_count"
    ),
    "out": ("d_out out_dim output_dim out_features output_size dim_out out_channels ffn_num_outputs"),
    "heads": (
        "num_heads n_heads n_head heads h num_attention_heads nhead nheads attn_heads attention_heads head n_h "
        "heads_count number_of_heads head_num num_head query_heads n_query_heads"
    ),
    "kv_heads": (
        "num_kv_heads n_kv_heads num_key_value_heads n_kv_groups num_kv_groups kv_heads n_query_groups n_kv_head"
    ),
    "head_dim": ("head_dim d_k dim_head head_size d_head key_dim d_v"),
    "inner": (
        "d_ff ff_dim ffn_dim d_inner inner_dim intermediate_size hidden_dim_ff dim_feedforward "
        "feed_forward_dim feed_forward_hidden ffn_hidden d_hid hidden_features ff_hidden mlp_dim dff "
        "filter_size intermediate_dim ffn_hid_dim feedforward_dim d_feedforward hidden_units n_inner ff_size pf_dim "
        "ffn_num_hiddens mlp_hidden_dim d_ffn moe_intermediate_size d_intermediate inter_dim"
    ),
    "length": (
        "max_len max_length max_seq_len max_seq_length block_size context_length seq_len seq_length "
        "max_positions max_position_embeddings context_size n_ctx max_context n_position n_positions length "
        "max_seqlen sequence_length sequence_len seqlen max_sequence_length context_window max_ctx"
    ),
    "vocabulary": (
        "vocab_size padded_vocab_size vocab n_vocab num_embeddings n_tokens vocabulary_size num_tokens num_classes "
        "n_classes classes voc_size enc_voc_size dec_voc_size src_vocab_size tgt_vocab_size trg_vocab_size n_src_vocab "
        "n_trg_vocab src_vocab tgt_vocab input_vocab_size target_vocab_size source_vocabulary_size "
        "target_vocabulary_size src_vocabulary_size tgt_vocabulary_size"
    ),
    "batch": ("max_batch_size batch_size batch bs"),
    "layers": ("num_layers n_layers n_layer num_hidden_layers depth n_blocks num_blocks layers"),
    "experts": ("num_experts n_experts n_expert num_local_experts moe_num_experts"),
    "top_k": (
        "top_k num_experts_per_tok topk n_activated_experts num_experts_per_token n_expert_per_token k active_experts"
    ),
    "eps": ("eps epsilon norm_eps layer_norm_eps rms_norm_eps layer_norm_epsilon norm_epsilon layernorm_epsilon"),
    "base": ("base theta rope_theta theta_base rope_base freqs_base max_period"),
}
SIZES: dict[str, str] = {name: size for size, names in _SIZES.items() for name in names.split()}
"""By usual name of a constructor argument, what it is the size of."""

_RATES = (
    "dropout drop dropout_rate drop_rate attn_dropout resid_dropout attn_pdrop resid_pdrop dropout_p "
    "drop_prob p attention_dropout hidden_dropout_prob attention_probs_dropout_prob embd_pdrop p_drop "
    "dropout_prob dropout_probability ffn_dropout residual_dropout drop_path proj_drop attn_drop"
)
LARGEST = 4_000_000
"""Numbers that an instance may hold."""

_OF_CONFIGS = {"layers": 2, "vocabulary": 13, "length": 160, "batch": 8, "eps": 1e-5, "base": 10000.0}
"""Sizes that no operation here asks for, where a constructor or its config does."""

_PARTS = ("transformer", "model")
"""Parts of a config that are configs."""

RATES = frozenset(_RATES.split())
"""Constructor arguments that are rates of dropout: 0 wherever they are asked for."""

FIXED: Mapping[str, Any] = {
    **dict.fromkeys(("multiple_of", "n_rep", "mp_size"), 1),
    **dict.fromkeys(("layer_id", "layer_idx", "block_idx", "layer_index", "layer_num", "idx"), 0),
    **dict.fromkeys(("ffn_dim_multiplier", "activation", "act", "act_layer", "norm_layer"), None),
    **dict.fromkeys(("dtype", "param_dtype", "torch_dtype"), torch.float32),
    **dict.fromkeys(("bidirectional", "is_causal", "causal", "masked", "mask", "quant", "use_cache", "vis"), False),
    "device": "cpu",
}
"""Constructor arguments that are no sizes, by what leaves things as they are; given only where they are asked for."""

_FLAGS = {"qkv_bias", "use_bias", "bias", "attention_bias", "mlp_bias", "add_bias", "add_bias_kv"}
_CONFIGS = (
    "config",
    "cfg",
    "conf",
    "args",
    "params",
    "hparams",
    "hyperparameters",
    "model_args",
    "configuration",
    "opt",
)


def built(
    candidate: Candidate, sizes: Mapping[str, Any], given: Mapping[str, Any] | None = None, *, seed: int = 0
) -> Any:
    """An instance with these sizes, from a seed. given: constructor arguments by their own names, which come first.

    Raises Unfit where the constructor asks for what no size is known for, or raises.
    """
    said: Unfit | None = None
    for declared in (True, False):
        try:
            arguments = arguments_for(candidate, sizes, given or {}, declared=declared)
            with torch.random.fork_rng():
                torch.manual_seed(seed)
                _small(candidate, arguments)
                return candidate.thing(**arguments)
        except Unfit as reason:
            said = said or reason
        except Exception as error:
            said = said or Unfit(f"its constructor raised {type(error).__name__}: {str(error)[:100]}")
        if not has_config(candidate):
            break
    raise said or Unfit("it cannot be built")


_LOOKED_AT: set[Any] = set()


def _small(candidate: Candidate, arguments: Mapping[str, Any]) -> None:
    """Raise Unfit where an instance would be large: some size of it was not understood."""
    if not candidate.is_network or candidate.thing in _LOOKED_AT:
        return
    _LOOKED_AT.add(candidate.thing)
    try:
        with torch.device("meta"):
            numbers = sum(p.numel() for p in candidate.thing(**arguments).parameters())
    except Exception:  # what cannot be made without numbers is made with them
        return
    if numbers > LARGEST:
        raise Unfit(f"its smallest instance would hold {numbers} numbers")


def arguments_for(
    candidate: Candidate, sizes: Mapping[str, Any], given: Mapping[str, Any], *, declared: bool = True
) -> dict[str, Any]:
    """The constructor's arguments. Sizes that are not asked for are left out; defaults of other arguments stand.

    declared: whether a config is an instance of the module's own dataclass, where it has one.
    """
    found: dict[str, Any] = {}
    for name, p in candidate.constructor.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            continue
        if name in given:
            found[name] = given[name]
        elif size_of(name, candidate.constructor) in sizes:
            found[name] = sizes[size_of(name, candidate.constructor)]
        elif size_of(name) == "inner" and "width" in sizes and not _has_width(candidate):
            found[name] = sizes["width"]
        elif name in RATES and not _beyond(p.default):
            found[name] = 0.0
        elif name in FIXED and p.default is p.empty:
            found[name] = FIXED[name]
        elif name in _CONFIGS or dataclasses.is_dataclass(_annotation(candidate, p)):
            found[name] = configuration(candidate, p, {**_OF_CONFIGS, **sizes}, given, declared=declared)
        elif p.default is p.empty and size_of(name) in _OF_CONFIGS:
            found[name] = _OF_CONFIGS[size_of(name)]
        elif p.default is p.empty:
            if name not in _FLAGS:
                raise Unfit(f"its constructor asks for {name!r}, which is no size that is known")
            found[name] = True
    return found


def _beyond(default: Any) -> bool:
    """Whether a default is no rate: such an argument is another thing under the same name."""
    return isinstance(default, int | float) and not 0 <= default <= 1


def flags(candidate: Candidate) -> dict[str, Any]:
    """The constructor's own arguments by which it holds biases, turned on."""
    return {name: True for name, p in candidate.constructor.items() if name in _FLAGS and p.default in (False, p.empty)}


_INNER_BESIDE_WIDTH = ("hidden_dim", "hidden", "d_hidden", "hidden_size", "num_hiddens")
"""Names of the width, which are those of the hidden layer where the width has another name beside them."""


def size_of(name: str, beside: Collection[str] = ()) -> str:
    """What an argument is the size of by its name, among the names beside it; empty where that is not known."""
    others = [other for other in beside if other != name and other not in _INNER_BESIDE_WIDTH]
    if name in _INNER_BESIDE_WIDTH and any(SIZES.get(other) == "width" for other in others):
        return "inner"
    return SIZES.get(name, SIZES.get(name.lower(), ""))


def has_config(candidate: Candidate) -> bool:
    """Whether the constructor takes a config object."""
    return any(
        name in _CONFIGS or dataclasses.is_dataclass(_annotation(candidate, p))
        for name, p in candidate.constructor.items()
    )


def _has_width(candidate: Candidate) -> bool:
    return any(size_of(name, candidate.constructor) == "width" for name in candidate.constructor)


def takes_size(candidate: Candidate, size: str) -> bool:
    """Whether the constructor has an argument for this size, or a config object that may hold one."""
    return any(size_of(name, candidate.constructor) == size or name in _CONFIGS for name in candidate.constructor)


def name_of_size(candidate: Candidate, size: str) -> str | None:
    """The constructor's own argument for a size."""
    return next((name for name in candidate.constructor if size_of(name, candidate.constructor) == size), None)


def _annotation(candidate: Candidate, p: inspect.Parameter) -> Any:
    if isinstance(p.annotation, str):
        return vars(candidate.module).get(p.annotation) if candidate.module is not None else None
    return p.annotation


def configuration(
    candidate: Candidate,
    p: inspect.Parameter,
    sizes: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    declared: bool = True,
) -> Any:
    """A config object: the module's own dataclass with the sizes filled in, else an object that answers by usual
    names."""
    kind = _annotation(candidate, p)
    if not dataclasses.is_dataclass(kind):
        kind = _declared(candidate)
    if kind is None or not declared:
        return Answering(sizes, given)
    fields: dict[str, Any] = {}
    names = [field.name for field in dataclasses.fields(kind)]
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        if field.name in given:
            fields[field.name] = given[field.name]
        elif size_of(field.name, names) in sizes:
            fields[field.name] = sizes[size_of(field.name, names)]
        elif field.name in RATES:
            fields[field.name] = 0.0
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            if field.name not in _FLAGS:
                raise Unfit(f"its config asks for {field.name!r}, which is no size that is known")
            fields[field.name] = True
    return kind(**fields)


def _declared(candidate: Candidate) -> Any:
    """The one dataclass of the module that is a config by its name."""
    found = [
        x
        for name, x in candidate.siblings().items()
        if inspect.isclass(x) and dataclasses.is_dataclass(x) and name.lower().endswith(("config", "args", "params"))
    ]
    return found[0] if len(found) == 1 else None


class Answering(dict[str, Any]):
    """A config that knows sizes by their usual names, as attributes and as items, and nothing else."""

    def __init__(self, sizes: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        super().__init__()
        self._sizes = {**sizes}
        self._given = {**given}

    def __missing__(self, name: str) -> Any:
        if name in self._given:
            return self._given[name]
        size = "inner" if name in ("hidden_dim", "d_hidden") else size_of(name)
        if size in self._sizes:
            return self._sizes[size]
        if name in _PARTS:
            return self
        if name in RATES or name.endswith(("_pdrop", "dropout", "dropout_rate")):
            return 0.0
        if name in FIXED:
            return FIXED[name]
        if name in _FLAGS:
            return True
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        try:
            self.__missing__(str(name))
        except KeyError:
            return False
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """The value, or the default where nothing is known."""
        try:
            return self[name]
        except KeyError:
            return default

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None
