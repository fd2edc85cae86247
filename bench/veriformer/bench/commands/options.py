"""Shared parts of the commands: options, exit statuses and written files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

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
    """The clock by its name, or the device's own."""
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
