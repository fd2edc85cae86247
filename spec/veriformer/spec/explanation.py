"""Explanation of a name of the suite, in the same words on a terminal and on a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from veriformer.spec.unicode_text import in_sentence

_COLOURS = {"wrong": "red", "leak": "magenta", "fragile": "yellow"}


@dataclass(frozen=True)
class Fact:
    """Words under a heading; ``names`` is their kind where they are names that have an explanation themselves."""

    heading: str
    words: Sequence[str]
    names: str = ""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Explanation of one name.

    kind: "requirement", "operation", … remark: a word or two beside the name. paragraphs: sentences, with formulas in
    LaTeX between dollars and code between backquotes, as words of facts have them. facts: those without words are
    left out.
    """

    kind: str
    name: str
    remark: str
    paragraphs: Sequence[str]
    facts: Sequence[Fact] = ()

    def told_facts(self) -> Iterator[Fact]:
        """Yield the facts that have words."""
        return (fact for fact in self.facts if fact.words)


def show(explanations: Sequence[Explanation], console: Console) -> None:
    """Print explanations, each followed by an empty line."""
    for explanation in explanations:
        for indent, line in _lines(explanation):
            print_line(console, indent, line)


def _lines(explanation: Explanation) -> Iterator[tuple[int, Text]]:
    yield 0, Text.assemble((explanation.name, "bold"), "  ", coloured(explanation.remark))
    for paragraph in explanation.paragraphs:
        yield 4, Text(in_sentence(paragraph))
    for fact in explanation.told_facts():
        words = [", ".join(fact.words)] if fact.names else fact.words
        yield from ((4, Text(f"{fact.heading}: {in_sentence(word)}")) for word in words)
    yield 0, Text()


def coloured(remark: str) -> Text:
    """Return a remark, in colour where it is a grave weight."""
    return Text(remark, _COLOURS.get(remark.strip(), "dim"))


def print_line(console: Console, indent: int, line: Text) -> None:
    """Wrap within the indentation on a terminal; elsewhere one line stays one line."""
    if console.is_terminal:
        console.print(Padding(line, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent) + line, soft_wrap=True)
