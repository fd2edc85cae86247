"""Templates of requirements: relations in floating point, laws, and the families that every operation has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partialmethod
from typing import Any

from veriformer.spec.requirement import Kind, Requirement, Weight


@dataclass(frozen=True)
class Law:
    """Requirement without its operation and its name; the fields are those of `Requirement`.

    equations: None for those of the operation. rests: names of laws of the operation that must hold first.
    """

    statement: str
    floating_point_statement: str
    bug_class: str
    precedents: tuple[str, ...]
    weight: Weight
    kind: Kind = Kind.LAW
    equations: tuple[str, ...] | None = None
    rests: tuple[str, ...] = ("contract",)


@dataclass(frozen=True)
class Relation:
    """Relation that a law demands in floating point; kind: of its laws, where they give none."""

    floating_point_statement: str
    kind: Kind = Kind.LAW

    def law(
        self,
        statement: str,
        bug_class: str,
        *precedents: str,
        weight: Weight,
        kind: Kind | None = None,
        equations: tuple[str, ...] | None = None,
        rests: tuple[str, ...] = ("contract",),
    ) -> Law:
        """Return a law that demands this relation."""
        stated = self.floating_point_statement
        return Law(statement, stated, bug_class, precedents, weight, kind or self.kind, equations, rests)

    wrong = partialmethod(law, weight=Weight.WRONG)
    leak = partialmethod(law, weight=Weight.LEAK)
    fragile = partialmethod(law, weight=Weight.FRAGILE)
    imprecise = partialmethod(law, weight=Weight.IMPRECISE)
    unguarded = partialmethod(law, weight=Weight.UNGUARDED)
    numerics = partialmethod(law, weight=Weight.FRAGILE, kind=Kind.NUMERICS)
    """Law of range or accuracy, which is fragile."""


EXACT = Relation("The same exactly.")
BITWISE = Relation("The same bit for bit.")
BOUND = Relation("The same within the bound.")
BOTH = Relation("The same within the sum of both bounds.")
SUM = Relation("The same within the sum of the bounds.")
COMPARED = Relation("The same within the sum of the bounds of what is compared.")
POWERS_OF_TWO = Relation("The same for powers of two, within the sum of both bounds.")
FINITE_HALF = Relation("The result is finite and within its bound, in fp16.")
NO_NUMBER = Relation("The same; no number is judged.")
CASE = Relation("The same exactly.", Kind.CONTRACT)
"""The contract's choice in a corner case, where the formula alone would leave one."""
CLAIMED = Relation(
    "The same; where another choice is claimed, that one is judged and shown as a deviation.", Kind.CONVENTION
)
"""A choice of the contract that an implementation may claim to make otherwise."""
FORMULA = Relation("Result and gradients lie within the running error bound of the formula.", Kind.EQUATION)


def wrong(statement: str, floating_point_statement: str, bug_class: str, *precedents: str, **given: Any) -> Law:
    """Return a law with a floating-point statement of its own; given: the other arguments of `Relation.law`."""
    return Relation(floating_point_statement).law(
        statement, bug_class, *precedents, **{"weight": Weight.WRONG, **given}
    )


def leak(*told: str, **given: Any) -> Law:
    """Return a law of that weight, as `wrong` does."""
    return wrong(*told, weight=Weight.LEAK, **given)


def fragile(*told: str, **given: Any) -> Law:
    """Return a law of that weight, as `wrong` does."""
    return wrong(*told, weight=Weight.FRAGILE, **given)


def numerics(*told: str, **given: Any) -> Law:
    """Return a law of range or accuracy, which is fragile, as `wrong` does."""
    return wrong(*told, weight=Weight.FRAGILE, kind=Kind.NUMERICS, **given)


def far_classes(result: str) -> Law:
    """Return the law that classes are told apart however many there are."""
    return numerics(
        "However many classes there are, each is told from the others: of two rows with one score of 16 above the "
        f"rest, which is the target of the first row alone, the result is {result}.",
        "The same in whole eights of the loss, and in the signs of the gradient where it is near its largest; "
        "targets are among the last of up to 70001 classes, and no number is judged.",
        "indices in narrow numbers",
        "https://github.com/keras-team/keras/issues/15012",
    )


_TO_BE_SAID = ""
_CHANGES_NOTHING = ("contract", "equation")  # prerequisites of what compares two calls
_FAMILIES = {
    "contract": NO_NUMBER.wrong(
        "An ordinary call returns a result of the promised shape, in its input's dtype and on its device.",
        "wrong form",
        kind=Kind.CONTRACT,
        rests=(),
    ),
    "result_dtype": NO_NUMBER.imprecise(
        "Tables and numbers that end a computation come in the dtype of the input; where no tensor types "
        "them, in the default one; the norm of gradients in halves in float32.",
        "result in another format",
        kind=Kind.CONTRACT,
        equations=(),
    ),
    "equation": wrong(
        _TO_BE_SAID,
        "Element by element $|\\hat y - y| \\le b$, where $b$ is the running error bound of the same formula in "
        "the dtype's roundoff, sums in any order, or of an algebraically equal form if that is larger.",
        "wrong formula",
        kind=Kind.EQUATION,
    ),
    "gradient": wrong(
        _TO_BE_SAID,
        "For any cotangent, of any strides, and any choice of arguments that ask for a gradient, each gradient "
        "lies within the running error bound of the proved vector-Jacobian product, and so does the result.",
        "wrong gradient",
        kind=Kind.GRADIENT,
    ),
    "purity": wrong(
        "The operation changes none of its arguments; a second call gives the same value again, and a second "
        "backward pass the same gradients.",
        "Arguments are the same bit for bit after the forward pass and after the backward pass, as is the "
        "cotangent; the second call on the same tensors lies within the bound of the formula, and so do the "
        "gradients that are taken a second time where the graph can be kept.",
        "modified argument",
        kind=Kind.CONTRACT,
        equations=(),
        rests=_CHANGES_NOTHING,
    ),
    "layout": wrong(
        "The value depends on the numbers in the arguments, not on where they lie in memory.",
        "Transposed, sliced, expanded (stride 0) arguments and cotangents give the value within its bound.",
        "assumed memory layout",
        kind=Kind.CONTRACT,
        equations=(),
        rests=_CHANGES_NOTHING,
    ),
    "batch": leak(
        "Rows are independent: each can be computed alone.",
        "A slice computed alone and the slice of the whole differ by at most the sum of both bounds.",
        "mixed batch elements",
        equations=(),
        rests=_CHANGES_NOTHING,
    ),
    "sensitivity": wrong(
        "An argument or option that changes the value of the formula changes the result.",
        "A call gives its value within its bound; a call that differs from it in one argument, and has its value "
        "further away than both bounds, gives another result.",
        "ignored argument",
        equations=(),
    ),
    "long": wrong(
        "The formula holds for axes of any length, and for any number of rows.",
        "Where axes, or the number of rows, are from 65 to 4999, and for 70000 rows of norms, result and gradients "
        "lie within their bounds.",
        "tile edge",
        kind=Kind.EQUATION,
        equations=(),
    ),
    "numpy_numbers": Relation("The formula's value within its bound.", Kind.CONTRACT).unguarded(
        "NumPy scalars count as numbers: given for Python's, they change nothing.", "refused number", equations=()
    ),
    "accuracy": Relation(
        "The root mean square error of the result, and of each gradient, is at most a stated multiple of that of "
        "the plain formula, whose every operation is rounded to the dtype: in every call, and over the whole row.",
        Kind.NUMERICS,
    ).imprecise("The result is that of the formula.", "lost precision", equations=()),
    "refusal": Relation("The same, with any exception.", Kind.REFUSAL).unguarded(
        _TO_BE_SAID, "accepted bad input", equations=()
    ),
    "refusal_names_argument": Relation(
        "The same; where two arguments clash, either name will do.", Kind.REFUSAL
    ).unguarded(
        "A refusal is a ValueError or a TypeError whose message names the argument that was bad.",
        "unhelpful refusal",
        equations=(),
        rests=("contract", "refusal"),
    ),
}


def of(operation: str, *equations: str, **of_family: tuple[str, ...]) -> Templates:
    """Return the templates of an operation.

    equations: those of the contract, the equation, the gradient and of each law, where none are given. of_family: those
    of a family that rests on others.
    """
    return Templates(operation, equations, of_family)


@dataclass(frozen=True)
class Templates:
    """Templates of an operation's requirements; all but its form rest on its form, `operation.contract`."""

    operation: str
    equations: tuple[str, ...]
    of_family: dict[str, tuple[str, ...]]

    def standard(self, families: str = "", /, **given: str | tuple[str, ...] | Law) -> tuple[Requirement, ...]:
        """Return the requirements of these families in their order (`refusals` are two), then the laws in theirs.

        given: by family its statement and its precedents, or one of them; by name a law. Raises ValueError for words on
        a family that is not listed, and for a family whose statement is missing.
        """
        names = families.replace("refusals", "refusal refusal_names_argument").split()
        laws = {name: law for name, law in given.items() if isinstance(law, Law)}
        said = {
            name.replace("refusals", "refusal"): words for name, words in given.items() if not isinstance(words, Law)
        }
        if unlisted := said.keys() - set(names):
            raise ValueError(f"given: expected families among {families}, got {', '.join(sorted(unlisted))}")
        return tuple(
            self._requirement(name, law)
            for name, law in ({name: _family_law(name, said.get(name, ())) for name in names} | laws).items()
        )

    def _requirement(self, name: str, law: Law) -> Requirement:
        own = self.equations if law.equations is None else law.equations
        return Requirement(
            slug=f"{self.operation}.{name}",
            operation=self.operation,
            statement=law.statement,
            floating_point_statement=law.floating_point_statement,
            kind=law.kind,
            weight=law.weight,
            equations=self.of_family.get(name, own),
            prerequisites=tuple(f"{self.operation}.{other}" for other in law.rests),
            bug_class=law.bug_class,
            precedents=law.precedents,
        )


def _family_law(family: str, said: str | tuple[str, ...]) -> Law:
    law, words = _FAMILIES[family], (said,) if isinstance(said, str) else said
    if words and not words[0].startswith("https://"):
        law, words = replace(law, statement=words[0]), words[1:]
    if not law.statement:
        raise ValueError(f"{family}: expected a statement, got none; give {family}=")
    return replace(law, precedents=words)
