"""Features of numbers and other options: given, left out, of another value than usual, of another kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from veriformer.verify.contract.feature import Arguments, Feature
from veriformer.verify.contract.features.making import Condition, Named, article, fragile, number, on, ordinary
from veriformer.verify.contract.signatures import INTEGRAL, OPTIONAL

CHOICES: dict[str, tuple[str, ...]] = {
    "activation": ("relu", "sigmoid", "tanh", "gelu"),
    "approximate": ("tanh",),
    "norm": ("post",),
    "pairing": ("half",),
    "quantization": ("int8",),
    "reduction": ("sum", "none"),
}
"""Options that are words, with those that are judged beside the default."""

NUMBERS: dict[str, tuple[str, ...]] = {
    "smooth_labels": ("num_classes", "alpha"),
    "temperature_scale": ("temperature",),
    "dropout": ("p",),
    "xavier_normal": ("n_in", "n_out"),
    **dict.fromkeys(("gradient_descent", "sgd_momentum", "adam", "adamw"), ("lr",)),
    "warmup": ("max_lr", "warmup_steps"),
    "warmup_cosine": ("max_lr", "warmup_steps", "total_steps"),
    "noam": ("d_model", "warmup_steps"),
    "clip_grad_norm": ("max_norm",),
    "causal_mask": ("n_q", "n_k"),
    "alibi_slopes": ("num_heads",),
    "alibi_bias": ("num_heads", "n_q", "n_k"),
    "sinusoidal_encoding": ("num_positions", "d_model"),
    "kv_cache": ("batch", "num_kv_heads", "max_length", "head_dim"),
    "top_k_filter": ("k",),
    "top_p_filter": ("p",),
    "beam_search": ("beam_width", "max_length", "eos"),
    "bpe_train": ("num_merges",),
    "multi_head_attention": ("num_heads",),
    "transformer_block": ("num_heads",),
}
"""Numbers that every call of an operation has."""

PROBABILITIES = frozenset({"p", "alpha", "label_smoothing", "dropout_p"})
"""Numbers between 0 and 1, of which both ends are degenerate."""


def of_options(operation: str) -> Iterator[Feature]:
    """Yield features of each optional argument: another value than the default, the default left out or given."""
    for name, default in OPTIONAL.get(operation, {}).items():
        if name in CHOICES:
            yield from ordinary(operation, *((f"{name}={word!r}", _equal(name, word)) for word in CHOICES[name]))
        elif isinstance(default, bool):
            yield from ordinary(operation, (f"{name}={not default}", _equal(name, not default)))
        elif name != "dim":
            yield from ordinary(operation, (article(name), _other(name, default)))
        if default is None:
            yield from ordinary(operation, (f"{name}=None", on(name, lambda x: x is None)))
        yield from ordinary(operation, (f"the default of {name}", _left_out(name, default)))


def of_numbers(operation: str) -> Iterator[Feature]:
    """Yield features of the values and kinds of numbers."""
    defaults, integral = OPTIONAL.get(operation, {}), INTEGRAL.get(operation, frozenset())
    for name in (*defaults, *NUMBERS.get(operation, ())):
        if name not in ("dim", "ignore_index", "eos", "mask", "bias", "weight", "generator", *CHOICES):
            of_zero = ordinary if defaults.get(name) == 0 else fragile
            yield from of_zero(operation, (f"{article(name)} of 0", _equal(name, 0)))
            yield from fragile(operation, *_signs(name))
            of_one = fragile if name in PROBABILITIES else ordinary
            if name in PROBABILITIES:
                yield from fragile(operation, (f"{article(name)} within rounding of 0 or 1", _nearly_certain(name)))
            yield from of_one(operation, (f"{article(name)} of 1", _equal(name, 1)))
            yield from fragile(operation, (f"a NumPy number as {name}", on(name, lambda x: isinstance(x, np.generic))))
            if name not in integral:
                yield from ordinary(operation, (f"an integer as {name}", on(name, _is_integer)))


def _signs(name: str) -> tuple[Named, ...]:
    return (
        (f"a negative {name}", lambda a: number(a[name]) and a[name] < 0),
        (f"an infinite {name}", lambda a: number(a[name]) and abs(a[name]) == np.inf),
    )


def _nearly_certain(name: str) -> Condition:
    """Return whether a probability, or 1 less it, is below the distance of numbers at 1 in the format of a call."""

    def present(a: Arguments) -> bool:
        p = a[name]
        if not number(p) or not 0 < p < 1:
            return False
        dtypes = [x.dtype for x in a.values() if isinstance(x, torch.Tensor) and x.is_floating_point()]
        return bool(min(p, 1 - p) < max((torch.finfo(dtype).eps for dtype in dtypes), default=0.0))

    return present


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _equal(name: str, value: Any) -> Condition:
    return lambda a: type(a[name]) is not bool and a[name] == value if number(value) else a[name] == value


def _other(name: str, default: Any) -> Condition:
    def present(a: Arguments) -> bool:
        value = a[name]
        return value is not None and not (type(value) is type(default) and value == default)

    return present


def _left_out(name: str, default: Any) -> Condition:
    def present(a: Arguments) -> bool:
        value = a.get(name, default)
        return value is None if default is None else type(value) is type(default) and value == default

    return present
