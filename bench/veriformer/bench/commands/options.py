"""Options, arguments and exit statuses that the commands share, checked before anything is imported that takes long."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.spec.suggestion import files_beside, meant, some
from veriformer.workers.address import NoSchedulerError, need

if TYPE_CHECKING:
    from veriformer.bench.document import Benchmarks


JSON = click.option(
    "--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write benchmarks.json here."
)
CLOCK = click.option(
    "--clock",
    type=click.Choice(["wall", "cpu", "device", "device cold"]),
    help="Seconds by the wall, of the process' own processor, or on a GPU by events, with the L2 cache flushed before "
    "each run (cold) or not. By default wall on a CPU and device cold on a GPU.",
)
DEVICE = click.option("--device", default="cpu", show_default=True, help="Where the calls run, such as cuda.")


def clock_of(named: str | None, device: str) -> str:
    """Return the clock by its name, or the device's own."""
    if named is None:
        return "device cold" if device.startswith("cuda") else "wall"
    if named.startswith("device") and not device.startswith("cuda"):
        refuse(f"--clock {named}: expected a GPU; add --device cuda, or take wall or cpu")
    return named


def check_device(device: str) -> None:
    """Refuse a device that this machine has not."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        refuse(f"--device {device}: {str(error).splitlines()[0]}")


def write(found: Benchmarks, file: Path | None) -> None:
    """Write what was measured, where a file is named."""
    from veriformer.bench import document

    if file is not None:
        try:
            document.write(found, file)
        except OSError as error:
            refuse(f"--json: expected a file that can be written: {error}")


def refuse(message: object) -> NoReturn:
    """End with the status of unusable arguments and a message, without a traceback."""
    click.echo(f"veriformer: {message}", err=True)
    raise SystemExit(2)


SHIPPED = ("impl", "impl:reference", "impl:tiled", "impl:sdpa", "impl:flex", "torch")
"""Targets that ship with the suite."""


def check_targets(words: Iterable[str]) -> None:
    """Refuse a word by which nothing can be loaded, as far as it can be seen without running anything."""
    for word in words:
        place = word if Path(word).exists() else word.partition(":")[0]
        if word in SHIPPED or place == "impl":
            continue
        if place.endswith(".py"):
            if not Path(place).is_file():
                close = meant(place, files_beside(place))
                refuse(f"target {place!r}: no such file (looked at {Path(place).absolute()}){close}")
        elif not all(part.isidentifier() for part in place.split(".")) or not _is_there(place.partition(".")[0]):
            refuse(
                f"target {word!r}: expected a file (path/to/mine.py), a module (pkg.mod), an attribute (pkg.mod:thing) "
                f"or one of {some(SHIPPED)}{meant(word, [*SHIPPED, *files_beside(word)])}"
            )


def check_arms(words: Iterable[str], target: str | None) -> None:
    """Refuse what is no folder, no wheel and no target."""
    for word in words:
        if Path(word).is_dir() or (Path(word).suffix == ".whl" and Path(word).is_file()):
            continue
        if Path(word).suffix == ".whl":
            refuse(f"{word!r}: expected a wheel, found no such file{meant(word, files_beside(word, '*.whl'))}")
        if target is not None:
            refuse(f"{word!r}: --target goes with a checkout or a wheel; expected a folder or a .whl file")
        check_targets([word])


def _is_there(top: str) -> bool:
    return PathFinder.find_spec(top, [str(Path.cwd())]) is not None or find_spec(top) is not None


def check_only(words: Sequence[str]) -> None:
    """Refuse a plain word that is no operation; globs and names of measurements are looked up once these are known."""
    operations = list(dict.fromkeys(requirement.operation for requirement in REQUIREMENTS))
    for word in words:
        if word.isidentifier() and word not in operations:
            refuse(f"--only: expected an operation, got {word!r}{meant(word, operations)}; one of {some(operations)}")


def check_scheduler(place: str | None) -> None:
    """Refuse what is no address of a scheduler, and a place where Dask is not installed."""
    try:
        if place is not None:
            need(place)
    except NoSchedulerError as error:
        refuse(error)
