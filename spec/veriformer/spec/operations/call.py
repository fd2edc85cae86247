"""Records of operations: a call as data, from which signatures, features, sizes and checks of arguments derive.

Axes have letters, right-aligned: ``"... d"`` is a tensor of any leading axes whose last axis has the length d of every
other ``d`` of the call; ``"G*R"`` is a product of letters; ``"n?"`` is an axis of that length or of 1.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

REQUIRED = inspect.Parameter.empty
"""Default of an argument that every call gives."""


@dataclass(frozen=True, kw_only=True)
class Argument:
    """An argument of a call. default: what leaving it out means, or REQUIRED."""

    default: Any = REQUIRED

    @property
    def required(self) -> bool:
        """Return whether every call gives it."""
        return self.default is REQUIRED


@dataclass(frozen=True)
class Tensor(Argument):
    """A tensor. axes: letters of its axes. learned: whether it is a parameter, of which constant rows are usual."""

    axes: str
    learned: bool = False


@dataclass(frozen=True)
class Floats(Tensor):
    """A floating tensor in the dtype of the call.

    constant: whether it has no gradient. sized_by_others: whether its sizes follow from the widths of a network.
    """

    constant: bool = False
    sized_by_others: bool = False


def weights(axes: str) -> Floats:
    """Return a weight or a bias of a network."""
    return Floats(axes, learned=True, sized_by_others=True)


@dataclass(frozen=True)
class Integers(Tensor):
    """An integer tensor, such as ids, labels and positions.

    below: the letter of the size that its entries stay under. floating: whether floating numbers are known in its
    place. probabilities: whether a distribution over that size is admitted instead of each entry.
    """

    below: str | None = None
    floating: bool = False
    probabilities: bool = False


@dataclass(frozen=True)
class Bools(Tensor):
    """A boolean tensor: a mask."""


@dataclass(frozen=True)
class TensorList(Argument):
    """A list of tensors of any shapes, such as parameters and gradients."""


@dataclass(frozen=True)
class Number(Argument):
    """A number.

    least: what is admitted. drawn: values that are tried, None for leaving it out. usual: values of practice where a
    signature hides it, likely ones first. between: where a value lies that is measured: a size of the code that fits as
    an epsilon is none.
    """

    least: float = float("-inf")
    drawn: tuple[float | None, ...] = ()
    usual: tuple[Any, ...] = ()
    between: tuple[float, float] = (float("-inf"), float("inf"))


@dataclass(frozen=True)
class Probability(Number):
    """A number from 0 to 1, both ends of which are degenerate."""

    least: float = 0.0


@dataclass(frozen=True)
class Integer(Number):
    """An integer, such as a size or a count."""

    least: float = 0.0


@dataclass(frozen=True)
class Pair(Argument):
    """Two numbers. usual: as of numbers."""

    usual: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Axis(Argument):
    """The axis along which an operation works: where the last letter of its tensor lies."""


@dataclass(frozen=True)
class Mark(Argument):
    """An integer that stands for something: a class to be ignored, the end of a text, a step of training."""


@dataclass(frozen=True)
class Choice(Argument):
    """A word. others: those that are judged beside the default. usual: as of numbers."""

    others: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()


@dataclass(frozen=True)
class Flag(Argument):
    """A bool."""


@dataclass(frozen=True)
class Other(Argument):
    """Anything else: a generator, a text, a function, a dtype. source: how a default is written that is no literal."""

    source: str | None = None


@dataclass(frozen=True)
class Result:
    """A result. axes: letters of a floating tensor, ``""`` for one number; None for anything else."""

    axes: str | None = None


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation of the contract: how it is called, what it gives, and the formula that says so.

    name, says: its name and meaning, in paragraphs; the first ends with the numbers of the source documents' equations.
    call: its arguments in order. options: those that are given by name alone.
    place: the module of its formula, a function of its name; empty without one.
    beside: an operation that makes an argument of this one, whose options it has among its own.
    grown: by the axis that a rule on sizes names, the letters that it governs; empty where calls have no such rules.
    """

    name: str
    says: str
    call: Mapping[str, Argument]
    options: Mapping[str, Argument] = field(default_factory=dict)
    result: Result = Result()
    place: str = ""
    beside: str | None = None
    grown: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def arguments(self) -> Mapping[str, Argument]:
        """Every argument, in order."""
        return {**self.call, **self.options}

    @property
    def formula(self) -> Callable[..., Any] | None:
        """Return ``f(xp, *call, **options)`` over an arithmetic, or None."""
        return self._found(self.name)

    @property
    def gradient(self) -> Callable[..., Any] | None:
        """Return its vector-Jacobian product ``f(xp, *call, g, **options)``, in which an axis follows g, or None.

        It gives the gradients of the differentiable arguments, in their order.
        """
        return self._found(f"{self.name}_vjp")

    def _found(self, name: str) -> Callable[..., Any] | None:
        # Records are read where nothing is computed: what computes is imported where it is asked for.
        return getattr(import_module(f"veriformer.spec.{self.place}"), name, None) if self.place else None

    @property
    def signature(self) -> inspect.Signature:
        """The signature, without annotations."""
        kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
        return inspect.Signature(
            [
                inspect.Parameter(name, kind, default=argument.default)
                for kind, arguments in zip(kinds, (self.call, self.options), strict=True)
                for name, argument in arguments.items()
            ]
        )

    @property
    def differentiable(self) -> tuple[str, ...]:
        """Return the names of the arguments that have a gradient, in the order in which ``gradient`` gives theirs."""
        return tuple(name for name, one in self.arguments.items() if isinstance(one, Floats) and not one.constant)

    @property
    def tensors(self) -> Mapping[str, Tensor]:
        """Return the arguments that are tensors."""
        return {name: one for name, one in self.arguments.items() if isinstance(one, Tensor)}

    @property
    def parameters(self) -> Mapping[str, Tensor]:
        """Return the learned tensors that a call may leave out, such as the gain and the shift of a norm."""
        own = self.tensors.items()
        return {name: one for name, one in own if one.learned and not one.required and "?" not in one.axes}

    def of_kind(self, *kinds: type[Argument]) -> tuple[str, ...]:
        """Return the names of the arguments of these kinds, in order."""
        return tuple(name for name, argument in self.arguments.items() if isinstance(argument, kinds))

    def sizes(self, shapes: Mapping[str, Sequence[int]]) -> dict[str, int]:
        """Return the sizes of letters that stand alone on an axis. shapes: of tensors by argument."""
        found: dict[str, int] = {}
        for name, shape in shapes.items():
            letters = letters_of(self.tensors[name].axes)
            for factors, size in zip(reversed(letters), reversed(shape), strict=False):
                if len(factors) == 1:
                    found.setdefault(factors[0], size)
        return found

    @property
    def meaning(self) -> str:
        """Return the first paragraph of what is said of it."""
        return self.says.partition("\n\n")[0]

    @property
    def text(self) -> str:
        """The call as Python source: ``layer_norm(x, weight=None, bias=None, *, eps=1e-5)``."""
        return f"{self.name}({', '.join(self._parameters())})"

    def _parameters(self) -> Iterator[str]:
        for arguments in (self.call, self.options):
            yield from ["*"] if arguments and arguments is self.options else []
            for name, argument in arguments.items():
                yield name if argument.required else f"{name}={_source(argument)}"


def _source(argument: Argument) -> str:
    if isinstance(argument, Other) and argument.source is not None:
        return argument.source
    return repr(argument.default).replace("'", '"').replace("e-0", "e-")


def letters_of(axes: str) -> tuple[tuple[str, ...], ...]:
    """Return the factors of each axis: ``"B G*R n? d"`` gives (B), (G, R), (n), (d); ``...`` is left out."""
    words = [word for word in axes.split() if word != "..."]
    return tuple(tuple(word.removesuffix("?").split("*")) for word in words)
