"""Requirements of any optimizer: laws that hold whatever its formula is.

Nothing is known of it but how PyTorch's optimizers are used: groups of parameters with options, gradients in ``grad``,
``step``, ``state_dict``. Whether parameters are each its own affair, which options there are and how steps answer the
gradients' scale is found out by plain runs first; a law that has no sense for it does not apply.
"""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements.templates import CASE, Relation, of

_BITS = Relation("The same bit for bit, after every step.")
_NOISE = Relation(
    "The distance of the two runs of a parameter is at most the spread that random errors of one roundoff in every "
    "parameter and intermediate result make in both, times a factor that right optimizers exceed once in ten million "
    "judgements."
)

REQUIREMENTS = of("optimizer").standard(
    contract=CASE.wrong(
        "Built on a list of parameters or of groups it takes steps; each parameter keeps its shape and its dtype, and "
        "`zero_grad` leaves no gradient.",
        "wrong form",
        rests=(),
    ),
    # Advice: optimizers that say so add the decay to it.
    gradients_kept=_BITS.unguarded("A step leaves the gradients as they are.", "modified gradient", kind=Kind.CONTRACT),
    skipped=_BITS.wrong(
        "A step leaves a parameter without a gradient, and what is kept of it, as they are.",
        "a skipped parameter that moves",
    ),
    resume=_BITS.wrong(
        "A new optimizer that loads the saved state, or one that stepped astray and is set back, goes on as one that "
        "was never interrupted: options of groups that were changed, and gaps, included.",
        "state that is not restored",
        "https://github.com/tenstorrent/tt-metal/issues/53212",
    ),
    own_steps=_BITS.fragile(
        "Where parameters that all have gradients take the steps that each takes alone, they do so with gaps too: a "
        "step in which a parameter, or another one, has no gradient does not count in its state.",
        "step counts or states that parameters share",
    ),
    order=_NOISE.leak("In which order parameters are listed does not matter.", "parameters that share a state"),
    groups=_BITS.wrong(
        "Two groups of equal options are as one of all, where no step depends on several parameters.",
        "groups that are not all stepped alike",
    ),
    group_options=_BITS.wrong(
        "The parameters of a group that has a rate, or another option, of its own take the steps of an optimizer that "
        "is built with it; those of the other groups take theirs.",
        "options of a group that are not used",
    ),
    added=_BITS.wrong(
        "A group that is added between two steps is stepped from there on as by an optimizer of its own, and the "
        "others as before.",
        "groups that are added and not set up",
    ),
    closure=_BITS.wrong(
        "A step that is given a closure calls it with gradients enabled, returns its loss, and is else the step that "
        "it is without.",
        "closure that is not called, or whose loss is lost",
        kind=Kind.CONTRACT,
    ),
    variants=_NOISE.wrong(
        "Every way of computing a step that it offers (`foreach`, `fused`, `capturable`) gives the same steps.",
        "one kernel apart",
    ),
    no_rate=_BITS.wrong(
        "Where the rate of every group is 0 from the first step on nothing moves.", "steps without a rate"
    ),
    rate=Relation("Some number is another one by the end of the second step after it.").wrong(
        "A rate that is changed between two steps, as schedules do, changes the steps after it.",
        "rate that is read once",
    ),
    maximize=_BITS.wrong(
        "Maximizing is minimizing by the negative gradients.", "sign that turns more than the gradient"
    ),
    scale=Relation("The same bit for bit, for powers of two.").wrong(
        "Where plain runs without ε give the same steps for gradients 8 times as large, or steps 8 times as large from "
        "parameters of 0, so do runs with gaps and groups, for any factor.",
        "steps that depend on the loss's scale",
    ),
)
