"""``veriformer inspect``: operations recognised in code that was not written for the contract."""

from __future__ import annotations

from pathlib import Path

import click

from veriformer.verify.commands.options import refuse
from veriformer.verify.engine import arguments
from veriformer.verify.engine.look import Look
from veriformer.verify.targets import lookup
from veriformer.verify.targets.error import TargetError


@click.command()
@click.argument("target")
@click.option(
    "--adapter",
    "adapter_file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write an adapter that pins what was recognised, to be edited and committed.",
)
@arguments.DEVICE
def inspect(target: str, adapter_file: Path | None, device: str) -> None:
    """Say what is recognised in a file, a module, a package or a class.

    Lists the operations of the contract that TARGET offers, each with its form, readings, constants and domain, and
    what looks like one and is not judged as it, with the reason. TARGET is as for `verify`.

    \b
    Exit status: 0 something was recognised, 2 unusable target, 3 nothing was recognised.
    """
    try:
        lookup.check(target)
        raise SystemExit(_inspect(target, adapter_file, device))
    except TargetError as error:
        refuse(error)


def _inspect(target: str, adapter_file: Path | None, device: str) -> int:
    arguments.check_device(device)
    with Look(target).load() as first:
        return _show(target, adapter_file, device, first)


def _show(target: str, adapter_file: Path | None, device: str, first: Look) -> int:
    # These import PyTorch and Hypothesis, which takes longer than all that is checked before.
    from rich.console import Console

    from veriformer.verify.contract.signatures import AREA
    from veriformer.verify.engine.probe import probe
    from veriformer.verify.forms.pin import Pin
    from veriformer.verify.presentation.progress import console
    from veriformer.verify.presentation.terminal import show_inspected
    from veriformer.verify.recognition.adapter import adapter

    found = probe(target, device, tuple(AREA), ("fp64", "fp32", "bf16"), first=first)
    for warning in found.warnings:
        console().print(f"[yellow]warning[/] {warning}")
    show_inspected(target, found.recognised, found.domains, Console(highlight=False, emoji=False))
    pins = [Pin.from_dict(entry) for entry in found.recognised.get("recognised", ())]
    if adapter_file is not None and pins:
        adapter_file.write_text(adapter(target, pins, found.domains, adapter_file), encoding="utf-8")
        click.echo(f"wrote {adapter_file}", err=True)
    return 0 if pins or found.domains else 3
