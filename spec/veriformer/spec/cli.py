"""The command line: the group that finds the commands of all packages, and ``veriformer spec``.

Commands are listed by static summaries, so that none is loaded for it.
"""

from __future__ import annotations

import io
import json
import sys
import traceback
from dataclasses import asdict
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from veriformer.spec import suite
from veriformer.spec.refused_arguments import suggesting
from veriformer.spec.registry import UnknownEquationError, select
from veriformer.spec.requirement import OF_REQUIREMENTS
from veriformer.spec.suggestion import meant, some

_INTERRUPTED = 130
_BROKEN = 3
_WIDE = 80
_FIRST = ("verify", "inspect", "compare", "report", "spec")
"""The commands that are named first where a word is none."""

SUMMARIES = {
    "bench": "Count and time an implementation against the predictions of the specification.",
    "campaign": "Run targets under new seeds for some hours, most where most is still to be seen, and say what may be "
    "missed.",
    "compare": "Do two implementations of anything agree?",
    "diff": "Compare two results files, sets or folders of them: findings first, then rows, what is worse first.",
    "explain": "Explain a name that a run gives or takes.",
    "inspect": "Say what is recognised in a file, a module, a package or a class.",
    "merge": "Put the parts of a run together, as if one machine had run it all.",
    "mutants": "Measure the suite by what it catches.",
    "report": "Write what was found as pages that a person reads.",
    "train": "Train a small language model on TEXT, or on a text that is made for it.",
    "verify": "Hold an implementation against the published mathematics.",
}
"""The first paragraph of the help of each command that another package registers."""


class PluginGroup(click.Group):
    """A group of the commands that installed packages register as entry points, each loaded when it is called."""

    def _entries(self) -> dict[str, EntryPoint]:
        return {e.name: e for e in entry_points(group="veriformer.commands")}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all registered commands."""
        return sorted({*super().list_commands(ctx), *self._entries()})

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands, each with its line of the summaries; one that has none there is loaded for it."""
        limit = formatter.width - 6 - max(map(len, self.list_commands(ctx)))
        with formatter.section("Commands"):
            formatter.write_dl([(name, self._summary(ctx, name, limit)) for name in self.list_commands(ctx)])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands that begin so, of which none is loaded, and the options of the group."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        commands = [CompletionItem(name, help=self._summary(ctx, name, _WIDE)) for name in names]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def _summary(self, ctx: click.Context, name: str, limit: int) -> str:
        entry = self._entries().get(name)
        if name not in self.commands and name in SUMMARIES and entry is not None and _is_here(entry):
            return click.Command(name, help=SUMMARIES[name]).get_short_help_str(limit)
        command = self.get_command(ctx, name)
        return command.get_short_help_str(limit) if command is not None else ""

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        """Load a command. A package that is registered but cannot be imported says so, and costs no other."""
        entry = self._entries().get(name)
        if name in self.commands or entry is None:
            return super().get_command(ctx, name)
        try:
            command: click.Command = entry.load()
        except ImportError as error:
            taken = {"ignore_unknown_options": True, "allow_extra_args": True}  # what it would have taken is not known
            why = f"Not available here: {error}."
            return click.Command(name, context_settings=taken, callback=_absent(name, error), help=why)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; where there is none of that name, say which comes close."""
        if args and not args[0].startswith("-") and args[0] not in self.list_commands(ctx):
            names = self.list_commands(ctx)
            listed = some(dict.fromkeys((*_FIRST, *names)))
            ctx.fail(f"No such command {args[0]!r}{meant(args[0], names)}: expected one of {listed}")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run; the exit status is 130 where a person interrupts it, 2 for unusable arguments, 3 for errors of ours."""
        write_anything()
        try:
            status = super().main(*args, **{**extra, "standalone_mode": False})
        except click.ClickException as error:
            suggesting(error).show()
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("interrupted", err=True)
            sys.exit(_INTERRUPTED)
        except Exception:
            traceback.print_exc()
            click.echo("this is an error of veriformer itself, and says nothing about what was to be judged", err=True)
            sys.exit(_BROKEN)
        sys.exit(status if isinstance(status, int) else 0)


def _is_here(entry: EntryPoint) -> bool:
    """Return whether the package of a command is installed: it is looked for, and not imported."""
    return find_spec(".".join(entry.module.split(".")[:2])) is not None


def _absent(name: str, error: ImportError) -> Any:
    def refuse() -> None:
        raise click.UsageError(f"{name!r} is not available in this installation: {error}")

    return refuse


def _say_version(ctx: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked:
        known = suite.commit()
        click.echo(f"veriformer {suite.version()}{f' (commit {known})' if known else ''}")
        ctx.exit()


@click.group(cls=PluginGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_say_version, help="Say it and end."
)
def main() -> None:
    """Does this code compute the published Transformer mathematics, at the published cost?"""


@main.command()
@click.argument("selections", metavar="[SELECT]...", nargs=-1)
@click.option("--json", "json_file", metavar="FILE", help="Write everything as JSON; - for standard output.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes that prove in parallel. [default: one per core]")
@click.option("--no-cache", is_flag=True, help="Prove again what has been proved before.")
def spec(selections: tuple[str, ...], json_file: str | None, jobs: int | None, no_cache: bool) -> int:
    """Equations with their derivations, verdicts and errata.

    SELECT is a number (24a; 24 for 24a and 24b), a range (20-23), a slug or a glob (*attention*). Without any, all
    equations are listed; with some, each derivation is shown step by step.

    Exit status: 0 every step holds and every erratum is refuted by its counterexample, 1 otherwise, 2 unusable
    arguments.
    """
    from veriformer.spec import terminal
    from veriformer.spec.document import document

    try:
        equations = select(*selections)
    except UnknownEquationError as error:
        raise click.UsageError(str(error)) from error
    verdicts = terminal.with_progress(equations, jobs=jobs, cached=not no_cache)
    if json_file is not None:
        text = json.dumps(document(equations, verdicts), indent=1, ensure_ascii=False)
        click.echo(text) if json_file == "-" else _write(Path(json_file), text)
    if json_file != "-":
        terminal.listing(equations, verdicts, in_full=bool(selections))
    sound = all(v.holds for v in verdicts.values()) and all(
        x.counterexample().refutes for e in equations for x in e.errata
    )
    return 0 if sound else 1


@main.command()
@click.argument("selections", metavar="[SELECT]...", nargs=-1)
@click.option(
    "--weight", type=click.Choice([weight.value for weight in OF_REQUIREMENTS]), help="Only those of this weight."
)
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON instead.")
def requirements(selections: tuple[str, ...], weight: str | None, as_json: bool) -> None:
    """List the requirements on an implementation, and the bugs that demanding them catches.

    SELECT is a requirement (attention.causality), an operation (softmax), an equation number (24a, 20-23) or a glob
    (*.gradient). Without any, all requirements are listed, a line each; with some, each is told in full: its statement
    over the real numbers, what is judged in floating point, what is at stake (its weight), what it rests on, and the
    public bugs that were of this kind.
    """
    from veriformer.spec.requirements import REQUIREMENTS
    from veriformer.spec.requirements.listing import listing
    from veriformer.spec.requirements.selection import UnknownSelectionError, matching

    try:
        chosen = {r.slug for word in selections for r in matching(word, REQUIREMENTS)}
    except UnknownSelectionError as error:
        raise click.UsageError(str(error)) from error
    found = [
        r for r in REQUIREMENTS if (not selections or r.slug in chosen) and (weight is None or r.weight.value == weight)
    ]
    if as_json:
        click.echo(json.dumps([asdict(r) for r in found], indent=1, ensure_ascii=False))
    else:
        listing(found, in_full=bool(selections))


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise click.UsageError(f"--json: cannot write {file}: {error.strerror}") from error


def write_anything() -> None:
    """Let a character that the encoding of a stream lacks be written as its escape, and not end the run."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")
