"""Requirements of any schedule of rates, used as PyTorch's ``LRScheduler`` is: laws that hold whatever its formula."""

from __future__ import annotations

from veriformer.spec.requirement import Kind, Requirement, Weight


def _law(name: str, statement: str, bug_class: str, floating: str, kind: Kind = Kind.LAW) -> Requirement:
    return Requirement(
        slug=f"lr_scheduler.{name}",
        operation="lr_scheduler",
        statement=statement,
        floating_point_statement=floating,
        kind=kind,
        weight=Weight.WRONG,
        prerequisites=() if name == "contract" else ("lr_scheduler.contract",),
        bug_class=bug_class,
    )


REQUIREMENTS = (
    _law(
        "contract",
        "Built on an optimizer it sets finite rates; after $t$ steps `last_epoch` is $t$, and `get_last_lr` gives the "
        "rates of the groups.",
        "count or rates that are one step apart",
        "The same exactly.",
        Kind.CONTRACT,
    ),
    _law(
        "resume",
        "A new schedule that loads the saved state, on an optimizer that did, goes on as one that was not interrupted.",
        "state that is not restored",
        "The same bit for bit, at every step.",
    ),
    _law(
        "groups",
        "The rates of a group follow from its own first rate: they are those that it has alone.",
        "groups that share a rate",
        "The same bit for bit, at every step.",
    ),
    _law(
        "closed_form",
        "Where it has a closed form besides the recursion, both give the same rates.",
        "forms that part",
        "At every step their distance is at most the spread that random errors of one roundoff in the rates make in "
        "the recursion, times a factor that right schedules exceed once in ten million judgements.",
    ),
)
