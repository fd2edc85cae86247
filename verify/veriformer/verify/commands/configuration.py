"""Options of a command from elsewhere than its line: from the environment, and from ``[tool.veriformer]``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from veriformer.spec.suggestion import meant, some

PREFIX = "VERIFORMER_"
_FILE, _TABLE = "pyproject.toml", "[tool.veriformer]"


class Configured(click.Command):
    """A command whose options may stand in the environment and in pyproject.toml as well: its line goes first."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        for word, option in self.words().items():
            option.envvar = PREFIX + word.upper().replace("-", "_")

    def words(self) -> dict[str, click.Option]:
        """Return the options by the word that a person writes."""
        options = (one for one in self.params if isinstance(one, click.Option))
        return {option.opts[-1].lstrip("-"): option for option in options}

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Read the line with the nearest table's values as defaults; an error says where a value comes from."""
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


def _nearest(folder: Path) -> tuple[Path | None, Mapping[str, Any]]:
    """Return the table of the folder or of the nearest one above it, and its file."""
    for file in (above / _FILE for above in (folder, *folder.parents)):
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
