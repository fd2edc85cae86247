"""Requirements of any optimizer: laws that hold whatever its formula is.

Nothing is known of it but how PyTorch's optimizers are used: groups of parameters with options, gradients in ``grad``,
``step``, ``state_dict``. Whether parameters are each its own affair, which options there are and how steps answer the
gradients' scale is found out by plain runs first; a law that has no sense for it does not apply.
"""

from __future__ import annotations

from veriformer.spec.requirement import Kind, Requirement, Weight

_BITS = "The same bit for bit, after every step."
_NOISE = (
    "The distance of the two runs of a parameter is at most the spread that random errors of one roundoff in every "
    "parameter and intermediate result make in both, times a factor that right optimizers exceed once in ten million "
    "judgements."
)


def _law(
    name: str,
    statement: str,
    bug_class: str,
    *,
    floating_point_statement: str = _BITS,
    kind: Kind = Kind.LAW,
    weight: Weight = Weight.WRONG,
    precedents: tuple[str, ...] = (),
) -> Requirement:
    return Requirement(
        slug=f"optimizer.{name}",
        operation="optimizer",
        statement=statement,
        floating_point_statement=floating_point_statement,
        kind=kind,
        weight=weight,
        prerequisites=() if name == "contract" else ("optimizer.contract",),
        bug_class=bug_class,
        precedents=precedents,
    )


REQUIREMENTS = (
    _law(
        "contract",
        "Built on a list of parameters or of groups it takes steps; each parameter keeps its shape and its dtype, and "
        "`zero_grad` leaves no gradient.",
        "wrong form",
        floating_point_statement="The same exactly.",
        kind=Kind.CONTRACT,
    ),
    _law(
        "gradients_kept",
        "A step leaves the gradients as they are.",
        "modified gradient",
        kind=Kind.CONTRACT,
        weight=Weight.UNGUARDED,  # optimizers that say so add the decay to it
    ),
    _law(
        "skipped",
        "A step leaves a parameter without a gradient, and what is kept of it, as they are.",
        "a skipped parameter that moves",
    ),
    _law(
        "resume",
        "A new optimizer that loads the saved state, or one that stepped astray and is set back, goes on as one that "
        "was never interrupted: options of groups that were changed, and gaps, included.",
        "state that is not restored",
        precedents=("https://github.com/tenstorrent/tt-metal/issues/53212",),
    ),
    _law(
        "own_steps",
        "Where parameters that all have gradients take the steps that each takes alone, they do so with gaps too: a "
        "step in which a parameter, or another one, has no gradient does not count in its state.",
        "step counts or states that parameters share",
        weight=Weight.FRAGILE,
    ),
    _law(
        "order",
        "In which order parameters are listed does not matter.",
        "parameters that share a state",
        floating_point_statement=_NOISE,
        weight=Weight.LEAK,
    ),
    _law(
        "groups",
        "Two groups of equal options are as one of all, where no step depends on several parameters.",
        "groups that are not all stepped alike",
    ),
    _law(
        "group_options",
        "The parameters of a group that has a rate, or another option, of its own take the steps of an optimizer that "
        "is built with it; those of the other groups take theirs.",
        "options of a group that are not used",
    ),
    _law(
        "added",
        "A group that is added between two steps is stepped from there on as by an optimizer of its own, and the "
        "others as before.",
        "groups that are added and not set up",
    ),
    _law(
        "closure",
        "A step that is given a closure calls it with gradients enabled, returns its loss, and is else the step that "
        "it is without.",
        "closure that is not called, or whose loss is lost",
        kind=Kind.CONTRACT,
    ),
    _law(
        "variants",
        "Every way of computing a step that it offers (`foreach`, `fused`, `capturable`) gives the same steps.",
        "one kernel apart",
        floating_point_statement=_NOISE,
    ),
    _law(
        "no_rate",
        "Where the rate of every group is 0 from the first step on nothing moves.",
        "steps without a rate",
    ),
    _law(
        "rate",
        "A rate that is changed between two steps, as schedules do, changes the steps after it.",
        "rate that is read once",
        floating_point_statement="Some number is another one by the end of the second step after it.",
    ),
    _law(
        "maximize",
        "Maximizing is minimizing by the negative gradients.",
        "sign that turns more than the gradient",
    ),
    _law(
        "scale",
        "Where plain runs without ε give the same steps for gradients 8 times as large, or steps 8 times as large from "
        "parameters of 0, so do runs with gaps and groups, for any factor.",
        "steps that depend on the loss's scale",
        floating_point_statement="The same bit for bit, for powers of two.",
    ),
)
