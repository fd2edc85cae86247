"""Requirements on a terminal: a line each, or each told in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from veriformer.spec.explanation import Explanation, Fact, coloured, print_line, show
from veriformer.spec.requirement import Requirement, Weight


def listing(requirements: Sequence[Requirement], *, in_full: bool) -> None:
    """Print them on standard output, with how many there are of each weight."""
    console = Console(highlight=False, emoji=False)
    width = max((len(requirement.slug) for requirement in requirements), default=0)
    if in_full:
        show([explained(requirement) for requirement in requirements], console)
    else:
        for requirement in requirements:
            print_line(console, 0, _line(requirement, width))
    counts = Counter(requirement.weight for requirement in requirements)
    told = ", ".join(f"{counts[weight]} {weight}" for weight in Weight if counts[weight])
    print_line(console, 0, Text(f"{len(requirements)} requirements{f': {told}' if told else ''}"))


def explained(requirement: Requirement) -> Explanation:
    """Return what is demanded, what it rests on, and the public bugs that were of this kind."""
    return Explanation(
        kind="requirement",
        name=requirement.slug,
        remark=str(requirement.weight),
        paragraphs=(requirement.statement, f"in floating point: {requirement.floating_point_statement}"),
        facts=(
            Fact("equations", requirement.equations, names="equation"),
            Fact("rests on", requirement.prerequisites, names="requirement"),
            Fact("bug class", (requirement.bug_class,) if requirement.bug_class else ()),
            Fact("seen before", requirement.precedents),
        ),
    )


def _line(requirement: Requirement, width: int) -> Text:
    weight = coloured(f"{requirement.weight:9}")
    line = Text.assemble(weight, f"  {requirement.slug:{width}}  ", (requirement.bug_class, "dim"))
    line.rstrip()
    return line
