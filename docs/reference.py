"""Pages of the reference, made from the code whenever the site is built: nothing of them is checked in."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from inspect import cleandoc
from pathlib import Path

import click

from veriformer.reports.environment import prose, statement
from veriformer.spec.cli import main
from veriformer.spec.explanation import Explanation, Fact
from veriformer.spec.operations import AREAS
from veriformer.verify.reference import KINDS
from veriformer.verify.reference.operations import OBJECTS

FOLDERS = {"requirement": "requirements", "operation": "operations", "equation": "equations"}
"""By kind of name, the folder with a page for each."""

LISTED = {"claim": "claims", "exit status": "exit-statuses", "field": "results"}
"""By kind of name, the page in ``reference/`` that tells of all."""

KERNELS = Path(__file__).parents[1] / "impl/tests/compiled_kernels.json"
"""Resources of the Triton kernels as compiled, which the tests hold against the cards' limits."""

OPERATORS = Path(__file__).parents[1] / "bench/tests/kernels_of_operators.json"
"""Kernels that operators launch, ours counted by the tests and Liger's read from its source."""

_LINK = re.compile(r"https?://[^\s<]+[^\s<.,;:)]")


def pages() -> dict[str, str]:
    """Return the Markdown of the pages of single names, by path below ``docs``."""
    return {f"{folder}/{one.name}.md": _page(one) for kind, folder in FOLDERS.items() for one in _explained(kind)}


def tables() -> dict[str, str]:
    """Return what is made of the pages that list names, by path below ``docs``."""
    listed = {f"reference/{page}.md": "\n\n".join(map(_section, _explained(kind))) for kind, page in LISTED.items()}
    return listed | {
        "reference/commands.md": _commands(),
        "reference/kernels.md": _kernels(),
        "operations/index.md": _operations(),
        "requirements/index.md": _requirements(),
        "equations/index.md": _equations(),
    }


def _explained(kind: str) -> list[Explanation]:
    return [KINDS[kind].explain(name) for name in KINDS[kind].names()]


def _page(one: Explanation) -> str:
    remark = one.remark if one.remark == one.kind else f"{one.kind}: {one.remark}"
    above = f'<p class="remark"><a href="index.html">{FOLDERS[one.kind]}</a> / {prose(remark)}</p>'
    below = f"<p><code>veriformer explain {escape(one.name)}</code> prints this page.</p>"
    return "\n\n".join((f"# {one.name}", above, *_body(one), below))


def _section(one: Explanation) -> str:
    """Return an explanation as a section of a page."""
    return "\n\n".join((f"## `{one.name}`", *_body(one)))


def _body(one: Explanation) -> Iterator[str]:
    """Yield paragraphs and facts in HTML, in which stars and bars are no markup."""
    yield from (f"<p>{_linked(text)}</p>" for text in one.paragraphs)
    yield from map(_fact, one.told_facts())


def _fact(fact: Fact) -> str:
    folder = FOLDERS.get(fact.names)
    if fact.names:
        words = ", ".join(
            f'<a href="../{folder}/{word}.html">{escape(word)}</a>' if folder else escape(word) for word in fact.words
        )
        return f"<p><b>{fact.heading}</b>: {words}</p>"
    if len(fact.words) == 1:
        return f"<p><b>{fact.heading}</b>: {_linked(fact.words[0])}</p>"
    return f"<p><b>{fact.heading}</b></p>\n<ul>\n{''.join(f'<li>{_linked(word)}</li>' for word in fact.words)}\n</ul>"


def _linked(text: str) -> str:
    """Return prose in HTML, with links to what is on the web."""
    return _LINK.sub(lambda m: f'<a href="{m[0]}">{m[0]}</a>', _prose(text))


def _prose(text: str) -> str:
    """Return prose in HTML, whose formulas break where they hold words."""
    pieces = text.split("$")  # prose, formula, prose, …
    return "".join(str(statement(piece) if i % 2 else prose(piece)) for i, piece in enumerate(pieces))


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table in HTML, of cells in HTML, that a narrow screen shows one cell below the other."""
    titles = "".join(f"<th>{word}</th>" for word in head)
    lines = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return f'<table class="stacked">\n<thead><tr>{titles}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>'


def _operations() -> str:
    told = []
    for area, operations in AREAS.items():
        rows = [(_code_link(one.name, one.text), escape(one.meaning)) for one in operations]
        told += [f"## {area.capitalize()}", _table(("call", "meaning"), rows)]
    rows = [(_code_link(name, name), _prose(text)) for name, text in OBJECTS.items()]
    return "\n\n".join((*told, "## Whole models, and objects that train", _table(("name", "meaning"), rows)))


def _code_link(name: str, text: str) -> str:
    return f'<a href="{name}.html"><code>{escape(text)}</code></a>'


def _requirements() -> str:
    of: Mapping[str, list[tuple[str, ...]]] = defaultdict(list)
    for one in _explained("requirement"):
        of[one.name.partition(".")[0]].append((_link(one.name), one.remark, _prose(one.paragraphs[0])))
    head = ("requirement", "weight", "statement")
    return "\n\n".join(f"## {operation}\n\n{_table(head, rows)}" for operation, rows in of.items())


def _equations() -> str:
    rows = [(_link(one.name), escape(one.remark), _prose(one.paragraphs[0])) for one in _explained("equation")]
    return _table(("number", "title", "statement"), rows)


def _link(name: str) -> str:
    return f'<a href="{name}.html">{escape(name)}</a>'


def _commands() -> str:
    told = []
    for name, command in _all_commands(main, "veriformer"):
        context = click.Context(command, info_name=name)
        options = (one.get_help_record(context) for one in command.params)
        rows = [(f"<code>{escape(record[0])}</code>", escape(record[1])) for record in options if record]
        texts = "\n\n".join(cleandoc(text) for text in (command.help, command.epilog) if text).split("\n\n")
        usage = " ".join((name, *command.collect_usage_pieces(context)))
        told += [f"## `{name}`", f"<pre><code>{escape(usage)}</code></pre>", *map(_paragraph, texts)]
        told += [_table(("option", "meaning"), rows)] if rows else []
    return "\n\n".join(told)


def _kernels() -> str:
    rows = json.loads(KERNELS.read_text(encoding="utf-8"))["kernels"]
    of: Mapping[tuple[str, int], list[tuple[str, ...]]] = defaultdict(list)
    for row in rows:
        cells = (row[name] for name in ("dtype", "width", "options", "shared", "tensor", "registers", "spilled"))
        of[row["kernel"], row["capability"]].append(tuple(f"{x:,}" if isinstance(x, int) else x for x in cells))
    head = ("dtype", "width", "options", "shared memory", "tensor memory", "registers", "spilled")
    resources = (f"## `{name}`, sm_{card}\n\n{_table(head, found)}" for (name, card), found in of.items())
    return "\n\n".join((*resources, *_kernels_of_operators()))


def _kernels_of_operators() -> tuple[str, ...]:
    told = json.loads(OPERATORS.read_text(encoding="utf-8"))
    rows = []
    for row in told["operators"]:
        ours, theirs = (" + ".join(map(str, row[side])) for side in ("ours", "liger"))
        rows.append((row["operator"], ours, theirs, row["file"], row["moves"]))
    said = (
        "Kernels of a forward and a backward pass in float32: ours as PyTorch dispatches them on a GPU, counted by the "
        f"tests without one, beside those of Liger, read from {told['liger']}."
    )
    head = ("operator", "ours", "Liger", "file", "what Liger reads and writes")
    return "## Kernels of an operator", f"<p>{said}</p>", _table(head, rows)


def _paragraph(text: str) -> str:
    lines = text.strip("\n").splitlines()
    if lines and lines[0].strip() == "\b":
        return f"<pre><code>{escape(chr(10).join(lines[1:]))}</code></pre>"
    return f"<p>{prose(' '.join(text.split()))}</p>"


def _all_commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield the commands of a group and of the groups in it, by what is typed."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _all_commands(command, f"{path} {name}")
        elif command is not None:
            yield f"{path} {name}", command
