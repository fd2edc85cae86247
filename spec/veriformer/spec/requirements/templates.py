"""Templates of requirements, bound to an operation: what reads the same for every operation is written once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partialmethod

from veriformer.spec.requirement import Kind, Requirement, Weight

_NO_NUMBER = "The same; no number is judged."


def of(operation: str, *equations: str) -> Templates:
    """Return the templates of an operation. equations: those its requirements rest on, where they say no others."""
    return Templates(operation, equations)


@dataclass(frozen=True)
class Templates:
    """Templates of an operation's requirements; all but its form rest on its form, `operation.contract`.

    equations: those of the contract, the equation, the gradient, and of each law, where none are given.
    """

    operation: str
    equations: tuple[str, ...] = ()

    def standard(self, families: str, **given: str | tuple[str, ...]) -> tuple[Requirement, ...]:
        """Return the requirements of these families, names of methods below, in their order.

        given: by family its arguments, the statement and the precedents, or one of them. Raises ValueError for those of
        a family that is not listed.
        """
        names = families.split()
        if unlisted := given.keys() - set(names):
            raise ValueError(f"given: expected families among {families}, got {', '.join(sorted(unlisted))}")
        found: list[Requirement] = []
        for name in names:
            arguments = given.get(name, ())
            made = getattr(self, name)(*([arguments] if isinstance(arguments, str) else arguments))
            found += made if isinstance(made, tuple) else [made]
        return tuple(found)

    def contract(self, *, equations: tuple[str, ...] | None = None) -> Requirement:
        """The plainest call gives what the contract promises in form."""
        return self._made(
            "contract",
            "An ordinary call returns a result of the promised shape, in its input's dtype and on its device.",
            _NO_NUMBER,
            "wrong form",
            kind=Kind.CONTRACT,
            weight=Weight.WRONG,
            equations=self._or_own(equations),
            rests=(),
        )

    def result_dtype(self) -> Requirement:
        """The dtype of a result that ends a computation."""
        return self._made(
            "result_dtype",
            "Tables and numbers that end a computation come in the dtype of the input; where no tensor types "
            "them, in the default one; the norm of gradients in halves in float32.",
            _NO_NUMBER,
            "result in another format",
            kind=Kind.CONTRACT,
            weight=Weight.IMPRECISE,
        )

    def form(self, statement: str) -> Requirement:
        """Return the requirement on the form of a result that is no tensor."""
        return self._made(
            "contract", statement, _NO_NUMBER, "wrong form", kind=Kind.CONTRACT, weight=Weight.WRONG, rests=()
        )

    def equation(self, statement: str, *precedents: str, equations: tuple[str, ...] | None = None) -> Requirement:
        """The result is that of the printed formula, over all options."""
        return self._made(
            "equation",
            statement,
            "Element by element $|\\hat y - y| \\le b$, where $b$ is the running error bound of the same formula in "
            "the dtype's roundoff, sums in any order, or of an algebraically equal form if that is larger.",
            "wrong formula",
            *precedents,
            kind=Kind.EQUATION,
            weight=Weight.WRONG,
            equations=self._or_own(equations),
        )

    def gradient(self, statement: str, *precedents: str, equations: tuple[str, ...] | None = None) -> Requirement:
        """The gradient of every floating argument is the proved vector-Jacobian product."""
        return self._made(
            "gradient",
            statement,
            "For any cotangent, of any strides, and any choice of arguments that ask for a gradient, each gradient "
            "lies within the running error bound of the proved vector-Jacobian product, and so does the result.",
            "wrong gradient",
            *precedents,
            kind=Kind.GRADIENT,
            weight=Weight.WRONG,
            equations=self._or_own(equations),
        )

    def purity(self) -> Requirement:
        """No argument is modified."""
        return self._made(
            "purity",
            "The operation changes none of its arguments; a second call gives the same value again, and a second "
            "backward pass the same gradients.",
            "Arguments are the same bit for bit after the forward pass and after the backward pass, as is the "
            "cotangent; the second call on the same tensors lies within the bound of the formula, and so do the "
            "gradients that are taken a second time where the graph can be kept.",
            "modified argument",
            kind=Kind.CONTRACT,
            weight=Weight.WRONG,
            rests=("contract", "equation"),
        )

    def layout(self, *precedents: str) -> Requirement:
        """Strides do not matter."""
        return self._made(
            "layout",
            "The value depends on the numbers in the arguments, not on where they lie in memory.",
            "Transposed, sliced, expanded (stride 0) arguments and cotangents give the value within its bound.",
            "assumed memory layout",
            *precedents,
            kind=Kind.CONTRACT,
            weight=Weight.WRONG,
            rests=("contract", "equation"),
        )

    def batch(self, statement: str, *precedents: str) -> Requirement:
        """Slices that do not depend on one another can be computed alone."""
        return self._made(
            "batch",
            statement,
            "A slice computed alone and the slice of the whole differ by at most the sum of both bounds.",
            "mixed batch elements",
            *precedents,
            kind=Kind.LAW,
            weight=Weight.LEAK,
            rests=("contract", "equation"),
        )

    def sensitivity(self, *precedents: str) -> Requirement:
        """No argument is dead."""
        return self._made(
            "sensitivity",
            "An argument or option that changes the value of the formula changes the result.",
            "A call gives its value within its bound; a call that differs from it in one argument, and has its value "
            "further away than both bounds, gives another result.",
            "ignored argument",
            *precedents,
            kind=Kind.LAW,
            weight=Weight.WRONG,
        )

    def long(self) -> Requirement:
        """Axes longer than a tile, more rows than one, and not multiples of it."""
        return self._made(
            "long",
            "The formula holds for axes of any length, and for any number of rows.",
            "Where axes, or the number of rows, are from 65 to 4999, and for 70000 rows of norms, result and gradients "
            "lie within their bounds.",
            "tile edge",
            kind=Kind.EQUATION,
            weight=Weight.WRONG,
        )

    def numpy_numbers(self) -> Requirement:
        """NumPy's numbers are numbers."""
        return self._made(
            "numpy_numbers",
            "NumPy scalars count as numbers: given for Python's, they change nothing.",
            "The formula's value within its bound.",
            "refused number",
            kind=Kind.CONTRACT,
            weight=Weight.UNGUARDED,
        )

    def accuracy(self, *precedents: str) -> Requirement:
        """In half precision the result is as good as the plain formula makes it."""
        return self._made(
            "accuracy",
            "The result is that of the formula.",
            "The root mean square error of the result, and of each gradient, is at most a stated multiple of that of "
            "the plain formula, whose every operation is rounded to the dtype: in every call, and over the whole row.",
            "lost precision",
            *precedents,
            kind=Kind.NUMERICS,
            weight=Weight.IMPRECISE,
        )

    def refusals(self, statement: str) -> tuple[Requirement, Requirement]:
        """Bad input is refused; and, lesser, the message says which argument was bad."""
        refused = self._made(
            "refusal",
            statement,
            "The same, with any exception.",
            "accepted bad input",
            kind=Kind.REFUSAL,
            weight=Weight.UNGUARDED,
        )
        named = self._made(
            "refusal_names_argument",
            "A refusal is a ValueError or a TypeError whose message names the argument that was bad.",
            "The same; where two arguments clash, either name will do.",
            "unhelpful refusal",
            kind=Kind.REFUSAL,
            weight=Weight.UNGUARDED,
            rests=("contract", "refusal"),
        )
        return refused, named

    def law(
        self,
        name: str,
        statement: str,
        floating_point_statement: str,
        bug_class: str,
        *precedents: str,
        weight: Weight,
        kind: Kind = Kind.LAW,
        equations: tuple[str, ...] | None = None,
    ) -> Requirement:
        """A law of this operation, which rests on nothing but the form of its results."""
        return self._made(
            name,
            statement,
            floating_point_statement,
            bug_class,
            *precedents,
            kind=kind,
            weight=weight,
            equations=self._or_own(equations),
        )

    wrong = partialmethod(law, weight=Weight.WRONG)
    leak = partialmethod(law, weight=Weight.LEAK)
    fragile = partialmethod(law, weight=Weight.FRAGILE)
    numerics = partialmethod(law, weight=Weight.FRAGILE, kind=Kind.NUMERICS)
    """Laws of that weight; laws of range and accuracy, which are fragile."""

    def far_classes(self, result: str) -> Requirement:
        """Classes are told apart however many there are."""
        return self.numerics(
            "far_classes",
            "However many classes there are, each is told from the others: of two rows with one score of 16 above the "
            f"rest, which is the target of the first row alone, the result is {result}.",
            "The same in whole eights of the loss, and in the signs of the gradient where it is near its largest; "
            "targets are among the last of up to 70001 classes, and no number is judged.",
            "indices in narrow numbers",
            "https://github.com/keras-team/keras/issues/15012",
        )

    def agreement(self, name: str, statement: str, bug_class: str, *precedents: str, weight: Weight) -> Requirement:
        """A law between calls."""
        return self.law(
            name,
            statement,
            "The same within the sum of the bounds of what is compared.",
            bug_class,
            *precedents,
            weight=weight,
        )

    def convention(
        self,
        name: str,
        statement: str,
        bug_class: str,
        *precedents: str,
        weight: Weight,
        equations: tuple[str, ...] | None = None,
    ) -> Requirement:
        """A choice that the contract makes and an implementation may claim to make otherwise."""
        return self.law(
            name,
            statement,
            "The same; where another choice is claimed, that one is judged and shown as a deviation.",
            bug_class,
            *precedents,
            weight=weight,
            kind=Kind.CONVENTION,
            equations=equations,
        )

    def contract_case(
        self, name: str, statement: str, bug_class: str, *, weight: Weight, equations: tuple[str, ...] | None = None
    ) -> Requirement:
        """Return the contract's requirement on a corner case, where the formula alone would leave a choice."""
        return self.law(
            name, statement, "The same exactly.", bug_class, weight=weight, kind=Kind.CONTRACT, equations=equations
        )

    def _or_own(self, equations: tuple[str, ...] | None) -> tuple[str, ...]:
        return self.equations if equations is None else equations

    def _made(
        self,
        name: str,
        statement: str,
        floating_point_statement: str,
        bug_class: str,
        *precedents: str,
        kind: Kind,
        weight: Weight,
        equations: tuple[str, ...] = (),
        rests: tuple[str, ...] = ("contract",),
    ) -> Requirement:
        return Requirement(
            slug=f"{self.operation}.{name}",
            operation=self.operation,
            statement=statement,
            floating_point_statement=floating_point_statement,
            kind=kind,
            weight=weight,
            equations=equations,
            prerequisites=tuple(f"{self.operation}.{other}" for other in rests),
            bug_class=bug_class,
            precedents=precedents,
        )
