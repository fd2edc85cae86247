"""Config objects: of a module's own class with sizes filled in, else an object that answers by usual names."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import torch

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.config_names import names_read, names_read_by
from veriformer.verify.forms.form import UnknownArgument
from veriformer.verify.forms.meanings import BUILT, VALUES, Meanings, meaning
from veriformer.verify.forms.size_names import open_names, owner_of, size_of

_RATES = (
    "dropout drop dropout_rate drop_rate attn_dropout resid_dropout attn_pdrop resid_pdrop dropout_p "
    "drop_prob p attention_dropout hidden_dropout_prob attention_probs_dropout_prob embd_pdrop p_drop "
    "dropout_prob dropout_probability ffn_dropout residual_dropout drop_path proj_drop attn_drop"
)
_PARTS = ("transformer", "model")
"""Parts of a config that are configs."""

RATES = frozenset(_RATES.split())
"""Constructor arguments that are rates of dropout."""

DTYPES = ("dtype", "param_dtype", "torch_dtype")
LAYER_INDICES = ("layer_id", "layer_idx", "block_idx", "layer_index", "layer_num")
FIXED: Mapping[str, Any] = {
    **dict.fromkeys(("multiple_of", "n_rep", "mp_size"), 1),
    **dict.fromkeys((*LAYER_INDICES, "idx"), 0),
    **dict.fromkeys(("ffn_dim_multiplier", "activation", "act", "act_layer", "norm_layer"), None),
    **dict.fromkeys(DTYPES, torch.float32),
    **dict.fromkeys(("weight_tying", "tie_weights", "tie_word_embeddings", "tie_embeddings", "weight_sharing"), False),
    **dict.fromkeys(("bidirectional", "is_causal", "causal", "masked", "mask", "quant", "use_cache", "vis"), False),
    **dict.fromkeys(("attn_scaling", "attention_scaling", "rope_scaling_factor"), 1.0),
    **dict.fromkeys(("device", "init_device"), "cpu"),
}
"""Constructor arguments that are no sizes, by what leaves things as they are; given only where they are asked for."""

_RATE_WORDS = frozenset(("dropout", "drop", "dropouts"))
_EXPANSIONS = frozenset(("expansion", "mul", "mult", "multiplier", "ratio", "scaling", "factor"))
_EXPANSION = 4
"""Ratio of the hidden layer's width to the input's where a constructor asks for it, and nothing else says it."""


def expansion_for(sizes: Mapping[str, Any], least: float = 1) -> float:
    """Return the least ratio of a hidden layer's width to its input's that holds these sizes."""
    if "inner" in sizes and "width" in sizes:
        inner, width = int(sizes["inner"]), int(sizes["width"])
        return max(least, -(-inner // width))
    return max(least, _EXPANSION)


_RATE = 0.125
"""The rate of dropout where code has none by default: in evaluation mode it changes nothing."""

RATED: dict[Any, set[str]] = {}
"""By class, the arguments and entries of its config that were given a rate of dropout."""


def rate_of(default: Any) -> float:
    """Return the rate that code has by default, else one that would show where it is applied in evaluation mode."""
    is_number = isinstance(default, int | float) and not isinstance(default, bool)
    return float(default) if is_number and 0 < default < 1 else _RATE


def is_rate(name: str) -> bool:
    """Return whether an argument is a rate of dropout: by its name, or by the words of it."""
    return name in RATES or bool(_RATE_WORDS & set(words(name)))


def is_expansion(name: str) -> bool:
    """Return whether an argument is the ratio of a hidden layer's width to the input's."""
    return bool(
        _EXPANSIONS & set(words(name))
        and {"forward", "ff", "ffn", "mlp", "hidden", "inner", "feedforward"} & set(words(name))
    )


FLAGS = {"rope_full_precision", "qkv_bias", "use_bias", "bias", "attention_bias", "mlp_bias", "add_bias", "add_bias_kv"}


def annotation(candidate: Candidate, p: inspect.Parameter) -> Any:
    """Return the annotation of a parameter; where it is written as a word, the module's object of that name."""
    if isinstance(p.annotation, str):
        return vars(candidate.module).get(p.annotation) if candidate.module is not None else None
    return p.annotation


def config_class(candidate: Candidate, p: inspect.Parameter) -> Any:
    """Return the class of configs that annotates a parameter, else the module's own; None where there is none."""
    kind: Any = annotation(candidate, p)
    return kind if is_config(kind) else _declared(candidate)


def configuration(
    candidate: Candidate,
    p: inspect.Parameter,
    sizes: Mapping[str, Any],
    given: Mapping[str, Any],
    *,
    declared: bool = True,
) -> Any:
    """Return a config object: the module's own dataclass with the sizes filled in, else an object that answers by usual
    names."""
    kind = config_class(candidate, p)
    if kind is None or not declared:
        return Answering(sizes, given, names_read(candidate), candidate.meanings).fill(names_read_by(candidate.thing))
    if not dataclasses.is_dataclass(kind) or _is_written(vars(kind).get("__init__")):
        return _constructed(kind, sizes, given, candidate.meanings)
    make: Any = kind
    fields: dict[str, Any] = {}
    known = {field.name: meaning(candidate.meanings, BUILT, field.name) for field in dataclasses.fields(kind)}
    for field in dataclasses.fields(kind):
        if not field.init:
            continue
        name = known[field.name]
        if field.name in given:
            fields[field.name] = given[field.name]
        elif name != field.name and name in VALUES:
            fields[field.name] = VALUES[name]
        elif chooses_dtype(name, field.default, sizes):
            fields[field.name] = sizes[DTYPE]
        elif size_of(name, known.values()) in CONSTANTS and field.default is not dataclasses.MISSING:
            continue
        elif size_of(name, known.values()) in sizes and _holds_numbers(make, field.name):
            fields[field.name] = sizes[size_of(name, known.values())]
        elif name in RATES and not isinstance(field.default, bool):
            fields[field.name] = rate_of(field.default)
            RATED.setdefault(candidate.thing, set()).add(field.name)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            if field.name not in FLAGS:
                raise UnknownEntry(field.name, known.values())
            fields[field.name] = True
    with untraced():
        return make(**fields)


CONSTANTS = frozenset(("eps", "base"))
"""Arguments whose values a config gives itself: it is built as it is, and made smaller in sizes alone."""


DTYPE = "dtype"
"""Beside the sizes of an instance, the dtype that it is called in."""


def chooses_dtype(name: str, default: Any, sizes: Mapping[str, Any]) -> bool:
    """Return whether an argument, or an entry of a config, is by name and default the dtype of a module."""
    return name in DTYPES and isinstance(default, torch.dtype) and DTYPE in sizes


def _has_default(p: inspect.Parameter) -> bool:
    return p.default is not p.empty


class UnknownEntry(AttributeError, KeyError):
    """An entry of a config with an unknown name. beside: the known names beside it."""

    def __init__(self, name: str, beside: Collection[str] = ()) -> None:
        super().__init__(name)
        self.entry, self.beside = name, tuple(beside)

    def as_argument(self, sizes: Collection[str]) -> UnknownArgument:
        """Return the error about this entry, with the names of the sizes that it may be."""
        message = f"its config asks for {self.entry!r}, which is no size that is known"
        return UnknownArgument(message, BUILT + self.entry, open_names(sizes, self.beside))


def is_config(kind: Any) -> bool:
    """Return whether an annotation is a class of configs: a dataclass, or a class with such a name."""
    return dataclasses.is_dataclass(kind) or (inspect.isclass(kind) and kind.__name__.lower().endswith(_ENDINGS))


def _is_written(function: Any) -> bool:
    """Return whether a function stands in a file: a dataclass makes its constructor, unless there is one in its
    text."""
    code = getattr(function, "__code__", None)
    return code is not None and not code.co_filename.startswith("<")


_ENDINGS = ("config", "args", "params")


def _declared(candidate: Candidate) -> Any:
    """Return the one class of the module that is a config by its name."""
    named = {name: x for name, x in candidate.siblings().items() if name.lower().endswith(_ENDINGS)}
    found: list[Any] = [x for x in named.values() if inspect.isclass(x) and dataclasses.is_dataclass(x)]
    found = found or [x for x in named.values() if inspect.isclass(x) and x.__module__ == candidate.thing.__module__]
    return found[0] if len(found) == 1 else None


def _says(kind: Any, parameters: Mapping[str, inspect.Parameter], name: str) -> bool:
    """Return whether a class of configs has a value of its own for an entry."""
    return _has_default(parameters[name]) if name in parameters else hasattr(kind, name)


_COLLECTIONS = ("list", "tuple", "dict", "set", "sequence", "mapping")
_NO_NUMBERS = frozenset((*_COLLECTIONS, "str", "none", "optional", "union", "typing"))
"""Words of annotations that admit no number by themselves."""


def _holds_numbers(kind: type, name: str) -> bool:
    """Return whether an entry of a config may be a number: it has no annotation, or one that admits some."""
    owners = (vars(one).get("__annotations__", {}) for one in inspect.getmro(kind))
    declared = next((annotations[name] for annotations in owners if name in annotations), None)
    said = declared if isinstance(declared, str) else "" if declared is None else inspect.formatannotation(declared)
    without_entries = re.sub(rf"\b({'|'.join(_COLLECTIONS)})\[.*?\]", r"\1", said.lower())
    found = set(re.findall(r"[a-z]+", without_entries))
    return not found or not found <= _NO_NUMBERS


def _constructed(kind: Any, sizes: Mapping[str, Any], given: Mapping[str, Any], meanings: Meanings) -> Any:
    """Return a config that its class makes: by the arguments of its constructor, and by what that reads of its
    keywords.
    """
    parameters = inspect.signature(kind).parameters
    names = [name for name, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    code = getattr(kind.__init__, "__code__", None)
    if code is not None and len(names) < len(parameters):
        names += [name for name in code.co_consts if isinstance(name, str) and name.isidentifier()]
        names += [name for name in inspect.get_annotations(kind) if name not in names]  # set by their names
    fields: dict[str, Any] = {}
    known = {name: meaning(meanings, BUILT, name) for name in names}
    for name, as_known in known.items():
        if name in given:
            fields[name] = given[name]
        elif as_known != name and as_known in VALUES:
            fields[name] = VALUES[as_known]
        elif name in parameters and chooses_dtype(name, parameters[name].default, sizes):
            fields[name] = sizes[DTYPE]
        elif size_of(as_known, known.values()) in CONSTANTS and _says(kind, parameters, name):
            continue
        elif size_of(as_known, known.values()) in sizes and _holds_numbers(kind, name):
            fields[name] = sizes[size_of(as_known, known.values())]
        elif as_known in RATES:
            fields[name] = rate_of(parameters[name].default if name in parameters else None)
        elif name in parameters and not _has_default(parameters[name]):
            raise UnknownEntry(name, known.values())
    with untraced():
        return kind(**fields)


@contextlib.contextmanager
def untraced() -> Iterator[None]:
    """Suspend tracing inside: what makes a configuration is no part of an operation."""
    before = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(before)


_ACTIVATIONS = {"act", "activation", "afn", "nonlinearity"}
"""Words of an entry that says by its name which activation a network has."""


class Answering(dict[str, Any]):
    """A config that knows sizes by their usual names, as attributes and as items, and nothing else."""

    def __init__(
        self,
        sizes: Mapping[str, Any],
        given: Mapping[str, Any],
        beside: Collection[str] = (),
        meanings: Meanings = (),
    ) -> None:
        """Set the sizes and values to answer with.

        beside: every entry that the code reads, where known: names are interpreted by their neighbours.
        """
        super().__init__()
        self._meanings = meanings
        self._beside = {meaning(meanings, BUILT, name) for name in beside}
        self._sizes = {**sizes}
        self._given = {**given}

    def __missing__(self, name: str) -> Any:
        if name in self._given:
            return self._given[name]
        entry, name = name, meaning(self._meanings, BUILT, name)
        if name != entry and name in VALUES:
            return VALUES[name]
        size = "inner" if name in ("hidden_dim", "d_hidden") and not self._beside else size_of(name, self._beside)
        if size in self._sizes:
            return self._sizes[size]
        name = name.removeprefix(owner_of(name, self._beside))
        if name in _PARTS:
            return self
        if name in RATES or name.endswith(("_pdrop", "dropout", "dropout_rate")):
            return _RATE
        if name in FIXED:
            return FIXED[name]
        if name in FLAGS:
            return True
        if _ACTIVATIONS & set(words(name)):
            return "gelu"
        if is_expansion(name):
            return expansion_for(self._sizes)
        raise UnknownEntry(entry, self._beside)

    def fill(self, names: Collection[str]) -> Answering:
        """Look up these entries, which code reads, so that they are seen as given; return self."""
        for name in names:
            with contextlib.suppress(KeyError):
                self[name] = self[name]
        return self

    def __contains__(self, name: object) -> bool:
        try:
            self.__missing__(str(name))
        except KeyError:
            return False
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value, or the default where nothing is known."""
        try:
            return self[name]
        except KeyError:
            return default

    def __getattr__(self, name: str) -> Any:
        if name[:1] == "_":
            raise AttributeError(name)
        return self[name]
