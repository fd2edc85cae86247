"""Shared options of commands, their exits and messages.

Options may stand in the environment, and in ``[tool.veriformer]``, as well as on the line.
"""

from __future__ import annotations

import importlib
import os
import secrets
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click
from click.core import ParameterSource

from veriformer.spec.requirement import Weight
from veriformer.spec.suggestion import meant, some
from veriformer.verify.contract import formats

if TYPE_CHECKING:
    from veriformer.verify.results import Results


INTERRUPTED = 130

_PREFIX = "VERIFORMER_"
_PROJECT_FILE, _TABLE = "pyproject.toml", "[tool.veriformer]"


class Configured(click.Command):
    """A command whose options may stand in the environment and in pyproject.toml as well: its line goes first."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for word, option in self.words().items():
            option.envvar = _PREFIX + word.upper().replace("-", "_")

    def words(self) -> dict[str, click.Option]:
        """Return the options by the word that a person writes."""
        options = (one for one in self.params if isinstance(one, click.Option))
        return {option.opts[-1].lstrip("-"): option for option in options}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the command line with the nearest table's values as defaults; an error names the source of a value."""
        file, table = _nearest(Path.cwd())
        if file is not None:
            extra["default_map"] = _defaults(self.words(), table, file)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.BadParameter as error:
            where = _whence(error, file)
            if not where:
                raise
            raise click.BadParameter(error.message.rstrip(".") + where, ctx=error.ctx, param=error.param) from error


class ListsWords(Configured):
    """A command whose repeatable options take several words at once: ``--only a b`` is ``--only a --only b``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Spread the words before click reads them."""
        repeatable = {word for option in self.params if getattr(option, "multiple", False) for word in option.opts}
        spread: list[str] = []
        option, first = None, False
        for word in args:
            if word.startswith("-"):
                option, first = (word if word in repeatable else None), True
                spread.append(word)
            elif option and not first:
                spread += [option, word]
            else:
                spread.append(word)
                first = False
        return super().parse_args(ctx, spread)


def refuse(message: object) -> NoReturn:
    """End with the status of unusable arguments and a message, without a traceback."""
    click.echo(f"veriformer: {message}", err=True)
    raise SystemExit(2)


def canonical_dtypes(ctx: click.Context, parameter: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the record names of dtypes, each once; all of them where none is named."""
    try:
        return tuple(dict.fromkeys(formats.canonical(name) for name in names)) or formats.NAMES
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def seed_or_drawn(ctx: click.Context, parameter: click.Parameter, seed: str) -> str:
    """Return the given seed; for ``random``, a drawn one."""
    return str(secrets.randbelow(2**32)) if seed == "random" else seed


SEED = click.option(
    "--seed",
    default="slug",
    callback=seed_or_drawn,
    metavar="N",
    help="Any word; 'random' draws one and prints it. [default: derived from each requirement's name]",
)


def _shard(ctx: click.Context, parameter: click.Parameter, text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    number, _, of = text.partition("/")
    if not (number.isdigit() and of.isdigit() and 1 <= int(number) <= int(of)):
        raise click.BadParameter(f"expected K/N with 1 ≤ K ≤ N, such as 3/16, got {text!r}")
    return int(number), int(of)


SHARD = click.option(
    "--shard",
    callback=_shard,
    metavar="K/N",
    help="Run the K-th of N parts; 'veriformer merge' puts their --json files together.",
)
BALANCE = click.option(
    "--balance",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="OLD.json",
    help="An earlier run: with --shard, parts take equally long by its seconds. The same file for all parts.",
)

FAIL_ON = click.option(
    "--fail-on",
    type=click.Choice([weight.value for weight in Weight if weight.advice]),
    help="The least weight that violates. [default: fragile, or what the waiver file says]",
)
PARTIAL = click.option(
    "--partial/--no-partial",
    "partial_accepted",
    default=False,
    help="What was judged may hold though a mask, a cache, a state or a branch was not seen, or another function "
    "could not be judged.",
)
SCHEDULER = click.option(
    "--scheduler",
    metavar="ADDRESS|FILE|local",
    help="Run on the workers of a Dask scheduler instead: tcp://host:8786, a scheduler file, or one started here.",
)
ANNOTATIONS = click.option(
    "--annotations/--no-annotations",
    "annotated",
    default=lambda: os.environ.get("GITHUB_ACTIONS") == "true",
    show_default="where GITHUB_ACTIONS is true",
    help="Print findings as annotations of GitHub Actions, at file and line.",
)
FILES = click.option(
    "--files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH…",
    help="With --scheduler: wheels, modules and folders that the target needs there, beside what it imports itself.",
)


def say(text: str) -> None:
    """Tell a person something that is no result."""
    from veriformer.verify.presentation.progress import console  # it takes a while, and not all that is said needs it

    console().print(text, markup=False)


def check_shard(
    shard: tuple[int, int] | None,
    balance: Path | None,
    json_file: Path | None,
    html: Path | None,
    *,
    sarif: Path | None = None,
    last_failed: bool = False,
) -> None:
    """Refuse options that do not go with a part of a run."""
    if shard is not None and json_file is None:
        refuse("--shard: expected --json FILE beside it, which 'veriformer merge' reads")
    if shard is not None and html is not None:
        refuse("--html: expected a whole run; give it to 'veriformer merge' instead")
    if shard is not None and sarif is not None:
        refuse("--sarif: expected a whole run; give it to 'veriformer report' with what 'veriformer merge' wrote")
    if shard is not None and last_failed:
        refuse("--lf: expected a whole run, got --shard: every part of a run has the same plan")
    if shard is None and balance is not None:
        refuse("--balance: expected beside --shard, whose parts it balances")


def annotate(found: Results) -> None:
    """Print findings as commands that GitHub Actions reads."""
    from veriformer.verify.presentation.sarif import workflow_commands

    for line in workflow_commands(found):
        click.echo(line)


def write_page(found: Results, html: Path) -> None:
    """Write the conformance report of a run; a large one has further pages in a folder beside it."""
    # The package of reports imports this one, so it is asked for by name, and only where a page is wanted.
    pages: dict[str, str] = importlib.import_module("veriformer.reports.page").render_run(found, html.name)
    for name, text in pages.items():
        file = html.parent / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    click.echo(f"wrote {html}", err=True)


def _nearest(folder: Path) -> tuple[Path | None, Mapping[str, Any]]:
    """Return the table of the folder or of the nearest one above it, and its file."""
    for file in (above / _PROJECT_FILE for above in (folder, *folder.parents)):
        try:
            found = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            raise click.UsageError(f"{file}: {error}") from error
        if "veriformer" in found:
            if not isinstance(found["veriformer"], dict):
                raise click.UsageError(f"{file}: {_TABLE}: expected a table, got {found['veriformer']!r}")
            return file, found["veriformer"]
    return None, {}


def _defaults(options: Mapping[str, click.Option], table: Mapping[str, Any], file: Path) -> dict[str, Any]:
    """Return the values of a table by the names of parameters. Raises click.UsageError for a key that is no option."""
    unknown = next((key for key in table if key not in options), None)
    if unknown is not None:
        raise click.UsageError(
            f"{file}: {_TABLE}: unknown key {unknown!r}{meant(unknown, options)}: expected one of {some(options)}"
        )
    return {str(options[key].name): _value(options[key], key, value, file) for key, value in table.items()}


def _value(option: click.Option, key: str, value: Any, file: Path) -> Any:
    """Return a value as the option takes it: paths are meant beside the file, one word for several is a list of one."""
    if option.is_flag != isinstance(value, bool):
        expected = "true or false" if option.is_flag else "a value"
        raise click.UsageError(f"{file}: {_TABLE}: {key}: expected {expected}, got {value!r}")
    if option.multiple:
        return [_beside(option, one, file) for one in (value if isinstance(value, list) else [value])]
    return _beside(option, value, file)


def _beside(option: click.Option, value: Any, file: Path) -> Any:
    return str(file.parent / value) if isinstance(option.type, click.Path) and isinstance(value, str) else value


def _whence(error: click.BadParameter, file: Path | None) -> str:
    """Return where a value that cannot be used comes from, where that is not the command line."""
    if error.ctx is None or error.param is None or error.param.name is None:
        return ""
    source = error.ctx.get_parameter_source(error.param.name)
    if source is ParameterSource.ENVIRONMENT:
        return f" (from the environment: {error.param.envvar})"
    return f" (from {file}, {_TABLE})" if source is ParameterSource.DEFAULT_MAP else ""
