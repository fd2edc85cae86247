"""Counterexamples as Python scripts that need nothing of the suite but the numbers it found.

A script makes the arguments, repeats the calls and the verdict in a function at its head, loads the target at its end,
and ends with a status other than 0 exactly where the violation is reproduced. Tensors of more
numbers than a person reads are packed; language models are rows of log-probabilities for every text.
"""

from __future__ import annotations

import base64
import inspect
import textwrap
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.scripts.drivers import DRIVERS, source


@dataclass(frozen=True)
class TabularLM:
    """A function of ids [b, t] to log-probabilities [b, V]: by the whole text, ``otherwise`` where it has no row."""

    rows: Mapping[tuple[int, ...], tuple[float, ...]]
    otherwise: tuple[float, ...]
    dtype: torch.dtype

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of these texts."""
        rows = [self.row(tuple(text)) for text in ids.tolist()]
        return torch.tensor(rows, dtype=self.dtype, device=ids.device)

    def row(self, text: tuple[int, ...]) -> tuple[float, ...]:
        """Return the log-probabilities of the tokens after a text."""
        return self.rows.get(text, self.otherwise)

    def source(self) -> str:
        """Return a Python expression that makes an equal function, with torch alone."""
        texts = f"[rows.get(tuple(text), {self.otherwise!r}) for text in ids.tolist()]"
        made = f"lambda rows: lambda ids: torch.tensor({texts}, dtype={self.dtype}, device=ids.device)"
        return f"({made})({dict(self.rows)!r})"


@dataclass(frozen=True)
class Seed:
    """Stand-in for a ``torch.Generator`` in recorded arguments: built afresh, from this seed, at every call."""

    value: int

    def generator(self) -> torch.Generator:
        """Return a new generator with this seed."""
        return torch.Generator().manual_seed(self.value)


@dataclass(frozen=True)
class Recorded:
    """Record of a call of the target: enough to repeat it.

    name: the variable that holds its result. wrt: the arguments whose gradients are taken, with ``cotangent``; again:
    they are taken twice, and those of the second time count.
    refusal: None for an ordinary call; for bad input, the names of which the refusal must hold one (perhaps none).
    default: PyTorch's default dtype during the call, where it decides that of the result.
    """

    name: str
    operation: str
    positional: tuple[str, ...]
    arguments: Mapping[str, Any]
    wrt: tuple[str, ...] = ()
    cotangent: torch.Tensor | None = None
    refusal: tuple[str, ...] | None = None
    default: torch.dtype | None = None
    again: bool = False


def script(title: str, loader: str, calls: Sequence[Recorded], verdict: Sequence[str]) -> str:
    """Return the whole script: first the calls with their verdict, last the loading of the target."""
    opening = [f'"""{title}"""', "", "from math import inf, nan", "", "import numpy as np", "import torch"]
    names: dict[int, str] = {}
    body = [line for call in calls for line in _call(call, names)]
    check = "def check(target):\n" + textwrap.indent("\n".join([*body, *verdict]), "    ")
    helpers = [text for text in dict.fromkeys(source(call.operation) for call in calls) if text]
    if "unpacked(" in check:
        helpers.append("\n".join(definition(check)).strip())
    return "\n\n\n".join(["\n".join(opening), check, *helpers, loader, "check(target)"]) + "\n"


def _call(call: Recorded, names: dict[int, str]) -> list[str]:
    lines: list[str] = []
    words = {}
    for key, value in call.arguments.items():
        words[key] = _argument(f"{key}{call.name.removeprefix('r')}", value, key in call.wrt, names, lines)
    listed = [words[key] if key in call.positional else f"{key}={words[key]}" for key in call.arguments]
    start = f"{DRIVERS[call.operation].__name__}(target, " if call.operation in DRIVERS else f"target.{call.operation}("
    made = f"{call.name} = {start}{', '.join(listed)})"
    if call.default is not None:
        lines.append(f"torch.set_default_dtype({call.default})")
    lines += [made] if call.refusal is None else _refused(made, call.refusal)
    if call.refusal is None and call.operation in dtypes.NUMBERS:
        tensor = f"torch.tensor({call.name}, dtype=torch.float64)"
        lines.append(f"{call.name} = {tensor} if isinstance({call.name}, float) else {call.name}")
    if call.wrt:
        lines.append(f"cotangent = {literal(call.cotangent)}")
        leaves = ", ".join(words[key] for key in call.wrt)
        options = f"allow_unused=True, materialize_grads=True{', retain_graph=keep' if call.again else ''}"
        taken = f"{call.name}_grads = torch.autograd.grad({call.name}, [{leaves}], cotangent, {options})"
        lines += ["for keep in (True, False):", f"    {taken}"] if call.again else [taken]
        lines += [f"{call.name}_grad_{key} = {call.name}_grads[{i}]" for i, key in enumerate(call.wrt)]
    return lines


def names_pattern(names: tuple[str, ...]) -> str:
    """Return a regular expression that finds any of the names as a word."""
    return rf"\b({'|'.join(names)})\b" if names else ""


def _refused(made: str, names: tuple[str, ...]) -> list[str]:
    if not names:
        unusable = "except (AssertionError, AttributeError):  # what came of it could not be used"
        refused = ["except Exception:", "    raise SystemExit(0)", 'raise SystemExit("bad input was accepted")']
        return ["try:", f"    {made}", unusable, "    pass", *refused]
    return [
        "import re",
        "",
        "try:",
        f"    {made}",
        "except (ValueError, TypeError) as error:",
        f"    named = re.search({names_pattern(names)!r}, str(error))",
        f"    raise SystemExit(0 if named else f'the refusal does not name {' or '.join(names)}: {{error}}')",
        'raise SystemExit("bad input was accepted")',
    ]


def _argument(name: str, value: Any, leaf: bool, names: dict[int, str], lines: list[str]) -> str:
    if isinstance(value, torch.Tensor):
        if leaf or id(value) not in names:
            lines.append(f"{name} = {literal(value)}{'.requires_grad_()' if leaf else ''}")
            names[id(value)] = name
        return names[id(value)]
    if isinstance(value, list | tuple) and any(isinstance(item, torch.Tensor) for item in value):
        items = [_argument(f"{name}_{i}", item, leaf, names, lines) for i, item in enumerate(value)]
        return f"[{', '.join(items)}]"
    return literal(value)


def literal(value: Any) -> str:
    """Return the Python source of a value: tensors with dtype and layout, generators by seed, else ``repr``."""
    if isinstance(value, Seed):
        return f"torch.Generator().manual_seed({value.value})"
    if isinstance(value, torch.Tensor):
        return _tensor(value.detach().cpu())
    if isinstance(value, TabularLM):
        return value.source()
    if isinstance(value, np.generic):
        return f"np.{type(value).__name__}({value.item()!r})"
    return repr(value)


def _tensor(value: torch.Tensor) -> str:
    base = tuple(
        slice(0, 1) if stride == 0 and size > 1 else slice(None)
        for size, stride in zip(value.shape, value.stride(), strict=True)
    )
    kept = value[base]
    numbers = kept.double() if kept.is_floating_point() else kept
    text = packed(kept) if kept.numel() > LARGE else f"torch.tensor({numbers.tolist()!r}, dtype={value.dtype})"
    if value.numel() == 0:
        text = f"torch.empty({tuple(kept.shape)!r}, dtype={value.dtype})"
    elif not kept.is_contiguous():
        text = f"{_room(kept)}.copy_({text})"
    return text if kept.shape == value.shape else f"{text}.expand({tuple(value.shape)!r})"


def _room(x: torch.Tensor) -> str:
    """Return an empty tensor of the same strides; between the entries of one of floats lies NaN."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True))
    if x.is_floating_point() and extent > x.numel():
        between = f"torch.full(({extent},), nan, dtype={x.dtype})"
        return f"{between}.as_strided({tuple(x.shape)!r}, {x.stride()!r})"
    return f"torch.empty_strided({tuple(x.shape)!r}, {x.stride()!r}, dtype={x.dtype})"


def describe(value: Any) -> Any:
    """Return an argument as plain data for the record."""
    if isinstance(value, torch.Tensor):
        values = value.detach().cpu()
        numbers = values.double() if values.is_floating_point() else values
        return {
            "dtype": str(value.dtype).removeprefix("torch."),
            "shape": list(value.shape),
            "values": numbers.tolist(),
        }
    if isinstance(value, Seed):
        return {"generator_seed": value.value}
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)


def within_bound(expression: str, exact: Any, bound: Any) -> list[str]:
    """Return verdict lines: the expression lies within the bound of the exact values, element by element."""
    return [
        f"observed = {expression}",
        f"exact = torch.tensor({exact!r}, dtype=torch.float64)",
        f"bound = torch.tensor({bound!r}, dtype=torch.float64)",
        "observed = observed.detach().cpu().double()",
        "error = (observed - exact).abs()",
        "within = (error <= bound) | (observed == exact) | bound.isposinf()",
        'print("observed", observed, "exact", exact, "error", error, "bound", bound, sep="\\n")',
        'raise SystemExit("violated" if not within.all() else 0)',
    ]


LARGE = 512
"""A tensor of more numbers than this is packed, and of what it is judged by only the worst entries are written."""


def unpacked(text: str, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the tensor whose bytes these are."""
    return torch.frombuffer(bytearray(zlib.decompress(base64.b85decode(text))), dtype=dtype).reshape(shape)


def packed(x: torch.Tensor) -> str:
    """Return the expression of a tensor: a call of ``unpacked``."""
    raw = x.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    text = base64.b85encode(zlib.compress(raw, 9)).decode()
    return f"unpacked({text!r}, {x.dtype}, {tuple(x.shape)!r})"


def definition(script: str) -> list[str]:
    """Return the lines that a script needs where it unpacks tensors."""
    if "unpacked(" not in script:
        return []
    return ["import base64", "import zlib", "", "", inspect.getsource(unpacked), ""]
