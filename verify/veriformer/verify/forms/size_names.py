"""Names of sizes: of constructor arguments and entries of configs, by the name as it is or by its words."""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping

from veriformer.verify.forms.candidate import words

_SIZES: Mapping[str, str] = {
    "width": (
        "d_model d_in in_dim input_dim dim hidden_size hidden_dim n_embd emb_dim embed_dim embedding_dim "
        "embed_size embedding_size hidden model_dim features n_state size d dims normalized_shape d_hidden "
        "num_features num_channels channels in_features ndim input_size n_embed num_hiddens emb_size emb c dmodel "
        "nx width num_units "
        "ninp units d_embed in_size h_dim in_channels model_size d_word_vec model_dimension model_dims features_count "
        "layer_shape norm_shape feature_size"
    ),
    "out": ("d_out out_size out_dim output_dim out_features output_size dim_out out_channels ffn_num_outputs"),
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
        "nhid ffn_num_hiddens mlp_hidden_dim d_ffn moe_intermediate_size d_intermediate inter_dim"
    ),
    "length": (
        "max_len max_length max_seq_len max_seq_length block_size context_length seq_len seq_length "
        "max_positions max_position_embeddings context_size n_ctx max_context n_position n_positions length "
        "max_seqlen sequence_length sequence_len seqlen max_sequence_length context_window max_ctx capacity"
    ),
    "vocabulary": (
        "vocab_size padded_vocab_size vocab n_vocab num_embeddings n_tokens vocabulary_size num_tokens num_classes "
        "n_classes classes voc_size enc_voc_size dec_voc_size src_vocab_size tgt_vocab_size trg_vocab_size n_src_vocab "
        "ntoken ntokens n_trg_vocab src_vocab tgt_vocab input_vocab_size target_vocab_size source_vocabulary_size "
        "target_vocabulary_size src_vocabulary_size tgt_vocabulary_size"
    ),
    "batch": ("max_batch_size batch_size batch bs bsz B max_bsz"),
    "layers": ("num_layers n_layers n_layer num_hidden_layers depth n_blocks num_blocks layers nlayers"),
    "experts": ("num_experts n_experts n_expert num_local_experts moe_num_experts"),
    "top_k": (
        "top_k num_experts_per_tok topk n_activated_experts num_experts_per_token n_expert_per_token k active_experts "
        "num_activated_experts num_active_experts experts_per_token n_experts_per_tok num_selects num_experts_active"
    ),
    "eps": ("eps epsilon e norm_eps layer_norm_eps rms_norm_eps layer_norm_epsilon norm_epsilon layernorm_epsilon"),
    "pad": ("pad_idx pad_id pad_index pad_token_id padding_idx pad_token_idx src_pad_idx trg_pad_idx tgt_pad_idx"),
    "base": ("base theta rope_theta theta_base rope_base freqs_base base_theta rotary_base max_period"),
}
SIZES: dict[str, str] = {name: size for size, names in _SIZES.items() for name in names.split()}
"""By usual name of a constructor argument, what it is the size of."""

_INNER_BESIDE_WIDTH = ("hidden_dim", "hidden", "d_hidden", "hidden_size", "num_hiddens")
"""Names of the width, which are those of the hidden layer where the width has another name beside them."""

_KV_BESIDE_HEADS = ("n_local_heads", "num_local_heads")
"""Names of a number of heads that is that of keys and values where the number of heads has another name beside it."""

_COUNTS = frozenset(("n", "num", "number", "count", "nb", "no"))
_WIDTHS = frozenset(("d", "dim", "dims", "dimension", "size", "width", "features"))
_INPUTS = frozenset(("input", "inputs", "inp", "in"))
_OF_INPUTS = _WIDTHS | {"shape", "units", "channels"}
"""Words that measure what a layer reads, where nothing else is said: ``input_dims``, ``inp_dim``."""
_LENGTHS = frozenset(("max", "maximum", "len", "length", "window"))
_SIDES = frozenset(
    (
        *("src", "tgt", "trg", "source", "target", "input", "output"),
        *("enc", "dec", "encoder", "decoder", "of", "the", "total", "local"),
    )
)
"""Words beside those that say what has the size: whose it is, of two sequences."""

_OF_SIDES = ("vocabulary", "length", "layers", "pad")
"""Sizes that each of two sequences, or an encoder and a decoder, may have of its own."""

_BY_WORDS: tuple[tuple[str, frozenset[str], str], ...] = tuple(
    (size, measures, names)
    for size, measures, every in (
        ("vocabulary", _COUNTS | _WIDTHS | _LENGTHS, "vocab,vocabulary"),
        ("width", _WIDTHS | {"n"}, "model,emb,embd,embed,embedding,resid,residual,residual stream"),
        (
            "inner",
            _WIDTHS,
            "mlp,mlp hidden,ff,ff hidden,ffn,ffn hidden,inner,intermediate,feedforward,feed forward,"
            "expand,expansion,expanded",
        ),
        ("kv_heads", _COUNTS, "kv head,kv heads,key value heads"),
        ("heads", _COUNTS, "head,heads,attention heads,attn heads,q heads,query heads"),
        ("head_dim", _WIDTHS, "head,heads,attention head"),
        ("head_dim", frozenset(("d", "dim")), "k,v,q,key,keys,value,values,query,queries,qk"),
        ("layers", _COUNTS, "layer,layers,block,blocks,encoder layers,decoder layers"),
        ("experts", _COUNTS, "expert,experts,routed experts,local experts"),
        (
            "length",
            _LENGTHS | {"n", "num", "size"},
            "ctx,context,seq,sequence,position,positions,tokens,time,timesteps",
        ),
    )
    for names in every.split(",")
)
"""By what has a size, the words that measure it: ``dim_model``, ``n_kv_heads``, ``max_context_len``."""


_NORMS = frozenset(("rms", "ln", "norm", "layer", "layernorm", "rmsnorm", "variance"))
_ROTATIONS = frozenset(("rope", "rotary", "re", "freq", "freqs", "frequency", "inv"))
_AT_THE_END = {
    **dict.fromkeys(("eps", "epsilon"), ("eps", _NORMS)),
    **dict.fromkeys(("base", "theta"), ("base", _ROTATIONS)),
}
"""By the last word of a name, what it is, and the words that may stand before it: ``rms_eps``, ``rotary_base``."""


_WORDS = frozenset(word for name in SIZES for word in words(name)).union(
    *(measures.union(names.split()) for _, measures, names in _BY_WORDS), _AT_THE_END.keys(), _NORMS, _ROTATIONS, _SIDES
)
"""Words of the names of sizes."""


def size_of(name: str, beside: Collection[str] = ()) -> str:
    """Return the size that an argument is by its name, among the names beside it; empty where that is not known."""
    others = [other for other in beside if other != name and other not in _INNER_BESIDE_WIDTH]
    if name in _INNER_BESIDE_WIDTH and any(_size(other) == "width" for other in others):
        return "inner"
    if name in _KV_BESIDE_HEADS and any(_size(other) == "heads" for other in others if other not in _KV_BESIDE_HEADS):
        return "kv_heads"
    known = _size(name)
    if known or not (owner := owner_of(name, beside)):
        return known
    return size_of(name.removeprefix(owner), [other.removeprefix(owner) for other in beside])


def owner_of(name: str, beside: Collection[str]) -> str:
    """Return the word, with the underscore behind it, that a name and another one beside it begin with and that says
    nothing of a size, but whose all of them are: ``lm_hidden_dim``, ``lm_n_heads``; empty where there is none."""
    owner, _, rest = name.partition("_")
    shared = any(other != name and other.startswith(f"{owner}_") for other in beside)
    measured = len(words(rest)) > 1  # of one word it is perhaps the size of the owner itself: ``patch_size``
    return f"{owner}_" if measured and shared and owner not in _WORDS else ""


@functools.cache
def _size(name: str) -> str:
    """Return the size that a name stands for: by the whole name, else its words, else the name without its owner."""
    known = SIZES.get(name, SIZES.get(name.lower(), "")) or _by_words(name)
    own = SIZES.get("_".join(word for word in words(name) if word not in _SIDES), "")
    return known or (own if own in _OF_SIDES else "")


def _by_words(name: str) -> str:
    """Return the size that a name's words stand for: words that measure, and words for what is measured."""
    every = words(name)
    if len(every) == 2 and every[0] in _INPUTS and every[1] in _OF_INPUTS:
        return "width"
    own = [word for word in every if word not in _SIDES]
    last, before = _AT_THE_END.get(own[-1] if own else "", ("", frozenset()))
    if last and before >= set(own[:-1]):
        return last
    for size, measures, names in _BY_WORDS:
        rest = [word for word in own if word not in measures]
        if len(rest) < len(own) and rest == names.split():
            return size
    return ""


_USUAL: Mapping[str, str] = {size: "d_model" if size == "width" else names.split()[0] for size, names in _SIZES.items()}


_LIKELY = ("width", "inner", "heads", "head_dim", "kv_heads", "vocabulary", "length", "layers", "experts", "top_k")


def open_names(sizes: Collection[str], beside: Collection[str]) -> tuple[str, ...]:
    """Return usual names of sizes that no argument beside stands for: these sizes first, then all others."""
    taken = {size_of(name, beside) for name in beside}
    asked = sorted(
        set(sizes) & _SIZES.keys(), key=lambda size: _LIKELY.index(size) if size in _LIKELY else len(_LIKELY)
    )
    return tuple(_USUAL[size] for size in dict.fromkeys((*asked, *_SIZES)) if size not in taken)
