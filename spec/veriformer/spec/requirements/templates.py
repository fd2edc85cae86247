"""Requirements that read the same for every operation: their statement is written once."""

from __future__ import annotations

from veriformer.spec.requirement import Kind, Requirement, Weight


def contract(operation: str, equations: tuple[str, ...] = ()) -> Requirement:
    """The plainest call gives what the contract promises in form."""
    return Requirement(
        slug=f"{operation}.contract",
        operation=operation,
        statement="An ordinary call returns a result of the promised shape, in its input's dtype and on its device.",
        floating_point_statement="The same; no number is judged.",
        kind=Kind.CONTRACT,
        weight=Weight.WRONG,
        equations=equations,
        bug_class="wrong form",
    )


def result_dtype(operation: str) -> Requirement:
    """The dtype of a result that ends a computation."""
    return Requirement(
        slug=f"{operation}.result_dtype",
        operation=operation,
        statement="Tables and numbers that end a computation come in the dtype of the input; where no tensor types "
        "them, in the default one; the norm of gradients in halves in float32.",
        floating_point_statement="The same; no number is judged.",
        kind=Kind.CONTRACT,
        weight=Weight.IMPRECISE,
        prerequisites=(f"{operation}.contract",),
        bug_class="result in another format",
    )


def form(operation: str, statement: str) -> Requirement:
    """Return the requirement on the form of a result that is no tensor."""
    return Requirement(
        slug=f"{operation}.contract",
        operation=operation,
        statement=statement,
        floating_point_statement="The same; no number is judged.",
        kind=Kind.CONTRACT,
        weight=Weight.WRONG,
        bug_class="wrong form",
    )


def equation(
    operation: str, equations: tuple[str, ...], statement: str, precedents: tuple[str, ...] = ()
) -> Requirement:
    """The result is that of the printed formula, over all options."""
    return Requirement(
        slug=f"{operation}.equation",
        operation=operation,
        statement=statement,
        floating_point_statement=(
            "Element by element $|\\hat y - y| \\le b$, where $b$ is the running error bound of the same formula in "
            "the dtype's roundoff, sums in any order, or of an algebraically equal form if that is larger."
        ),
        kind=Kind.EQUATION,
        weight=Weight.WRONG,
        equations=equations,
        prerequisites=(f"{operation}.contract",),
        bug_class="wrong formula",
        precedents=precedents,
    )


def gradient(
    operation: str, equations: tuple[str, ...], statement: str, precedents: tuple[str, ...] = ()
) -> Requirement:
    """The gradient of every floating argument is the proved vector-Jacobian product."""
    return Requirement(
        slug=f"{operation}.gradient",
        operation=operation,
        statement=statement,
        floating_point_statement=(
            "For any cotangent, of any strides, and any choice of arguments that ask for a gradient, each gradient "
            "lies within the running error bound of the proved vector-Jacobian product, and so does the result."
        ),
        kind=Kind.GRADIENT,
        weight=Weight.WRONG,
        equations=equations,
        prerequisites=(f"{operation}.contract",),
        bug_class="wrong gradient",
        precedents=precedents,
    )


def purity(operation: str) -> Requirement:
    """No argument is modified."""
    return Requirement(
        slug=f"{operation}.purity",
        operation=operation,
        statement=(
            "The operation changes none of its arguments; a second call gives the same value again, and a second "
            "backward pass the same gradients."
        ),
        floating_point_statement=(
            "Arguments are the same bit for bit after the forward pass and after the backward pass, as is the "
            "cotangent; the second call on the same tensors lies within the bound of the formula, and so do the "
            "gradients that are taken a second time where the graph can be kept."
        ),
        kind=Kind.CONTRACT,
        weight=Weight.WRONG,
        prerequisites=(f"{operation}.contract", f"{operation}.equation"),
        bug_class="modified argument",
    )


def layout(operation: str, precedents: tuple[str, ...] = ()) -> Requirement:
    """Strides do not matter."""
    return Requirement(
        slug=f"{operation}.layout",
        operation=operation,
        statement="The value depends on the numbers in the arguments, not on where they lie in memory.",
        floating_point_statement="Transposed, sliced, expanded (stride 0) arguments and cotangents give the "
        "value within its bound.",
        kind=Kind.CONTRACT,
        weight=Weight.WRONG,
        prerequisites=(f"{operation}.contract", f"{operation}.equation"),
        bug_class="assumed memory layout",
        precedents=precedents,
    )


def batch(operation: str, statement: str, precedents: tuple[str, ...] = ()) -> Requirement:
    """Slices that do not depend on one another can be computed alone."""
    return Requirement(
        slug=f"{operation}.batch",
        operation=operation,
        statement=statement,
        floating_point_statement="A slice computed alone and the slice of the whole differ by at most the sum of "
        "both bounds.",
        kind=Kind.LAW,
        weight=Weight.LEAK,
        prerequisites=(f"{operation}.contract", f"{operation}.equation"),
        bug_class="mixed batch elements",
        precedents=precedents,
    )


def sensitivity(operation: str, precedents: tuple[str, ...] = ()) -> Requirement:
    """No argument is dead."""
    return Requirement(
        slug=f"{operation}.sensitivity",
        operation=operation,
        statement="An argument or option that changes the value of the formula changes the result.",
        floating_point_statement=(
            "A call gives its value within its bound; a call that differs from it in one argument, and has its value "
            "further away than both bounds, gives another result."
        ),
        kind=Kind.LAW,
        weight=Weight.WRONG,
        prerequisites=(f"{operation}.contract",),
        bug_class="ignored argument",
        precedents=precedents,
    )


def long(operation: str) -> Requirement:
    """Axes longer than a tile, more rows than one, and not multiples of it."""
    return Requirement(
        slug=f"{operation}.long",
        operation=operation,
        statement="The formula holds for axes of any length, and for any number of rows.",
        floating_point_statement=(
            "Where axes, or the number of rows, are from 65 to 4999, and for 70000 rows of norms, result and gradients "
            "lie within their bounds."
        ),
        kind=Kind.EQUATION,
        weight=Weight.WRONG,
        prerequisites=(f"{operation}.contract",),
        bug_class="tile edge",
    )


def numpy_numbers(operation: str) -> Requirement:
    """NumPy's numbers are numbers."""
    return Requirement(
        slug=f"{operation}.numpy_numbers",
        operation=operation,
        statement="NumPy scalars count as numbers: given for Python's, they change nothing.",
        floating_point_statement="The formula's value within its bound.",
        kind=Kind.CONTRACT,
        weight=Weight.UNGUARDED,
        prerequisites=(f"{operation}.contract",),
        bug_class="refused number",
    )


def accuracy(operation: str, precedents: tuple[str, ...] = ()) -> Requirement:
    """In half precision the result is as good as the plain formula makes it."""
    return Requirement(
        slug=f"{operation}.accuracy",
        operation=operation,
        statement="The result is that of the formula.",
        floating_point_statement=(
            "The root mean square error of the result, and of each gradient, is at most a stated multiple of that of "
            "the plain formula, whose every operation is rounded to the dtype: in every call, and over the whole row."
        ),
        kind=Kind.NUMERICS,
        weight=Weight.IMPRECISE,
        prerequisites=(f"{operation}.contract",),
        bug_class="lost precision",
        precedents=precedents,
    )


def refusals(operation: str, statement: str) -> tuple[Requirement, Requirement]:
    """Bad input is refused; and, lesser, the message says which argument was bad."""
    refused = Requirement(
        slug=f"{operation}.refusal",
        operation=operation,
        statement=statement,
        floating_point_statement="The same, with any exception.",
        kind=Kind.REFUSAL,
        weight=Weight.UNGUARDED,
        prerequisites=(f"{operation}.contract",),
        bug_class="accepted bad input",
    )
    named = Requirement(
        slug=f"{operation}.refusal_names_argument",
        operation=operation,
        statement="A refusal is a ValueError or a TypeError whose message names the argument that was bad.",
        floating_point_statement="The same; where two arguments clash, either name will do.",
        kind=Kind.REFUSAL,
        weight=Weight.UNGUARDED,
        prerequisites=(f"{operation}.contract", refused.slug),
        bug_class="unhelpful refusal",
    )
    return refused, named


def law(
    operation: str,
    name: str,
    statement: str,
    floating_point_statement: str,
    bug_class: str,
    *,
    weight: Weight,
    kind: Kind = Kind.LAW,
    equations: tuple[str, ...] = (),
    precedents: tuple[str, ...] = (),
) -> Requirement:
    """A law of one operation, which rests on nothing but the form of its results."""
    return Requirement(
        slug=f"{operation}.{name}",
        operation=operation,
        statement=statement,
        floating_point_statement=floating_point_statement,
        kind=kind,
        weight=weight,
        equations=equations,
        prerequisites=(f"{operation}.contract",),
        bug_class=bug_class,
        precedents=precedents,
    )


def far_classes(operation: str, result: str, equations: tuple[str, ...] = ()) -> Requirement:
    """Classes are told apart however many there are."""
    return law(
        operation,
        "far_classes",
        "However many classes there are, each is told from the others: of two rows with one score of 16 above the "
        f"rest, which is the target of the first row alone, the result is {result}.",
        "The same in whole eights of the loss, and in the signs of the gradient where it is near its largest; targets "
        "are among the last of up to 70001 classes, and no number is judged.",
        "indices in narrow numbers",
        kind=Kind.NUMERICS,
        equations=equations,
        precedents=("https://github.com/keras-team/keras/issues/15012",),
        weight=Weight.FRAGILE,
    )


def convention(
    operation: str,
    name: str,
    statement: str,
    bug_class: str,
    equations: tuple[str, ...],
    precedents: tuple[str, ...] = (),
    *,
    weight: Weight,
) -> Requirement:
    """A choice that the contract makes and an implementation may claim to make otherwise."""
    return Requirement(
        slug=f"{operation}.{name}",
        operation=operation,
        statement=statement,
        floating_point_statement="The same; where another choice is claimed, that one is judged and shown as a "
        "deviation.",
        kind=Kind.CONVENTION,
        weight=weight,
        equations=equations,
        prerequisites=(f"{operation}.contract",),
        bug_class=bug_class,
        precedents=precedents,
    )


def contract_case(
    operation: str, name: str, statement: str, bug_class: str, equations: tuple[str, ...] = (), *, weight: Weight
) -> Requirement:
    """Return the contract's requirement on a corner case, where the formula alone would leave a choice."""
    return Requirement(
        slug=f"{operation}.{name}",
        operation=operation,
        statement=statement,
        floating_point_statement="The same exactly.",
        kind=Kind.CONTRACT,
        weight=weight,
        equations=equations,
        prerequisites=(f"{operation}.contract",),
        bug_class=bug_class,
    )
