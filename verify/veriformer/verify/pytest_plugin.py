"""``pytest --veriformer mine.py``: every requirement of the target as a test of its own, beside those of the project.

Every pytest run of an environment with this package imports this module: what takes long is imported where it is used.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from veriformer.verify.commands.request import Request
    from veriformer.verify.engine.user_tests import Call

_OPTION = "--veriformer"
_OF_A_RUN = frozenset(
    (
        *("jobs", "json_file", "junit", "html", "sarif", "annotated", "every_row", "exitfirst", "maxfail"),
        *("last_failed", "resume", "shard", "balance", "scheduler", "files", "partial_accepted", "timeout"),
    )
)
"""Options of ``veriformer verify`` that are pytest's own affair here, or need a whole run."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one option."""
    parser.getgroup("veriformer", "published Transformer mathematics").addoption(
        _OPTION,
        action="append",
        default=[],
        metavar="TARGET",
        help="hold a target to its requirements, each a test: the words of 'veriformer verify', such as "
        "'mine.py --only softmax --dtype fp32'; other options come from [tool.veriformer] and the environment; may be "
        "repeated; -m veriformer runs these tests alone",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    named = "requirement, operation, dtype, weight"
    config.addinivalue_line("markers", f"veriformer({named}): a requirement of a target of {_OPTION}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add the tests of every target before markers and keywords choose among all."""
    for words in config.getoption(_OPTION):
        collector = TargetCollector.from_parent(session, name=words, words=words)
        items.extend(collector.collect())


class TargetCollector(pytest.Collector):
    """A target, which gives one test for every requirement and dtype that applies to it."""

    def __init__(self, *, words: str, parent: pytest.Session, **settings: Any) -> None:
        request = _request(words)
        file = Path(request.target.partition(":")[0])
        path = file if file.suffix == ".py" else Path(str(parent.config.rootpath))
        super().__init__(**{**settings, "name": request.target}, parent=parent, path=path, nodeid=request.target)
        self.request = request

    def collect(self) -> Iterator[RequirementItem]:
        """Give the tests."""
        for call in _calls(self.request):
            yield RequirementItem.from_parent(self, name=call.row.key.replace("-cpu]", "]"), call=call)


class RequirementItem(pytest.Item):
    """A requirement in a dtype."""

    def __init__(self, *, call: Call, **settings: Any) -> None:
        super().__init__(**settings)
        self.call = call
        known = call.row.check.requirement
        named = {"requirement": known.slug, "operation": known.operation, "weight": known.weight.value}
        self.add_marker(pytest.mark.veriformer(**named, dtype=call.row.dtype))

    def runtest(self) -> None:
        """Run the row."""
        self.call.run()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the code begins that is judged, and how the test is named in a report."""
        named, place = f"{self.name} of {self.parent.name if self.parent else ''}", self.call.place
        return (self.path, None, named) if place is None else (Path(place["file"]).resolve(), place["line"] - 1, named)


def _request(words: str) -> Request:
    """Return what the words, the environment and the nearest table ask for. Raises pytest.UsageError."""
    import click
    from click.core import ParameterSource

    from veriformer.verify.cli import verify
    from veriformer.verify.commands.request import Request

    try:
        context = verify.make_context("veriformer verify", shlex.split(words))
    except click.exceptions.Exit as error:
        raise pytest.UsageError(f"{_OPTION}: expected a target, got {words!r}") from error
    except click.ClickException as error:
        raise pytest.UsageError(f"{_OPTION} {words!r}: {error.format_message()}") from error
    said = [name for name in context.params if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    wrong = next((name for name in said if name in _OF_A_RUN), None)
    if wrong is not None:
        option = next(one for one in verify.params if one.name == wrong)
        raise pytest.UsageError(f"{_OPTION} {words!r}: {option.opts[-1]} is for 'veriformer verify' alone")
    return Request(**context.params)


def _calls(request: Request) -> list[Call]:
    """Return the rows of a target as tests. Raises pytest.UsageError."""
    from veriformer.spec.requirements.selection import UnknownSelectionError
    from veriformer.verify.engine.waivers import WaiverError
    from veriformer.verify.targets.error import TargetError

    try:
        request.check()
        # This imports PyTorch, which takes longer than all that is checked before.
        from veriformer.verify.engine.user_tests import calls_of

        return calls_of(request.plan(), request.waiver_file)
    except (UnknownSelectionError, WaiverError, TargetError) as error:
        raise pytest.UsageError(f"{_OPTION}: {error}") from error
