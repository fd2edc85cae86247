"""Requirements on a terminal: a line each, or each told in full."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from veriformer.spec.requirement import Requirement, Weight
from veriformer.spec.unicode_text import in_sentence

_COLOURS = {Weight.WRONG: "red", Weight.LEAK: "magenta", Weight.FRAGILE: "yellow"}


def listing(requirements: Sequence[Requirement], *, in_full: bool) -> None:
    """Print them on standard output, with how many there are of each weight."""
    console = Console(highlight=False, emoji=False)
    width = max((len(requirement.slug) for requirement in requirements), default=0)
    for requirement in requirements:
        lines = _told(requirement) if in_full else iter([(0, _line(requirement, width))])
        for indent, line in lines:
            _print(console, indent, line)
    counts = Counter(requirement.weight for requirement in requirements)
    told = ", ".join(f"{counts[weight]} {weight}" for weight in Weight if counts[weight])
    _print(console, 0, Text(f"{len(requirements)} requirements{f': {told}' if told else ''}"))


def _weight(requirement: Requirement) -> Text:
    return Text(f"{requirement.weight:9}", _COLOURS.get(requirement.weight, "dim"))


def _line(requirement: Requirement, width: int) -> Text:
    line = Text.assemble(_weight(requirement), f"  {requirement.slug:{width}}  ", (requirement.bug_class, "dim"))
    line.rstrip()
    return line


def _told(requirement: Requirement) -> Iterator[tuple[int, Text]]:
    yield (
        0,
        Text.assemble(
            (requirement.slug, "bold"), "  ", (str(requirement.weight), _COLOURS.get(requirement.weight, "dim"))
        ),
    )
    yield 4, Text(in_sentence(requirement.statement))
    yield 4, Text(f"in floating point: {in_sentence(requirement.floating_point_statement)}")
    for name, words in (
        ("equations", requirement.equations),
        ("rests on", requirement.prerequisites),
        ("bug class", (requirement.bug_class,) if requirement.bug_class else ()),
    ):
        if words:
            yield 4, Text(f"{name}: {', '.join(words)}")
    for link in requirement.precedents:
        yield 4, Text(f"seen before: {link}")
    yield 0, Text()


def _print(console: Console, indent: int, line: Text) -> None:
    """Wrap within the indentation on a terminal; elsewhere one line stays one line."""
    if console.is_terminal:
        console.print(Padding(line, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent) + line, soft_wrap=True)
