"""Arguments of the command line that can be found unusable before anything that runs is imported."""

from __future__ import annotations

import os
import tempfile
from importlib.metadata import entry_points
from pathlib import Path

import click

from veriformer.spec.suggestion import meant, some
from veriformer.workers.address import NoSchedulerError, need

_DEVICES = ("cpu", "cuda", "mps", "xpu", "hpu", "mtia", "xla", "vulkan", "ipu", "meta", "privateuseone")
"""Kinds of devices that PyTorch knows, the usual ones first."""

LOCAL = "local"


def device(ctx: click.Context, parameter: click.Parameter, name: str) -> str:
    """Return a word that names a device. Raises click.BadParameter for others: PyTorch is not needed to see it."""
    kind, _, number = name.partition(":")
    # An installed backend may have brought a name of its own, such as npu.
    if kind not in _DEVICES and not any(entry_points(group="torch.backends")):
        expected = f"expected one of {some(_DEVICES)}, with a number where there are several (cuda:1)"
        raise click.BadParameter(f"{expected}, got {name!r}{meant(kind, _DEVICES)}")
    if number and not number.isdigit():
        raise click.BadParameter(f"expected a number after {kind}:, got {name!r}")
    if kind == "meta":
        raise click.BadParameter("'meta' holds no numbers to be judged")
    return name


DEVICE = click.option(
    "--device", default="cpu", show_default=True, callback=device, help="PyTorch device that tensors are made on."
)
JOBS = click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores", help="Worker processes."
)
"""Options that several commands have."""


def check_device(name: str) -> None:
    """Raise click.BadParameter unless PyTorch has this device here, and tensors on it hold numbers."""
    if name == "cpu":
        return
    import torch

    try:
        ones = torch.ones(1, device=name)
    except Exception as error:  # each kind of device has exceptions of its own
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        message = f"{name!r} cannot be used here: {reason}; leave it out for the CPU"
        raise click.BadParameter(message, param_hint="--device") from error
    if ones.is_meta:
        raise click.BadParameter("'meta' holds no numbers to be judged", param_hint="--device")


def output(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """Return a path that can be written, its folder made. Raises click.BadParameter."""
    if path is None:
        return None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
        if path.exists():
            with path.open("r+b"):
                pass
    except OSError as error:
        raise click.BadParameter(f"{path} cannot be written: {error.strerror or error}") from error
    return path


class ExecutionError(Exception):
    """The run cannot be executed there; the message has the missing part and the remedy."""


def check_scheduler(place: str | None) -> None:
    """Raise ExecutionError for an invalid address of a scheduler, and where Dask is not installed."""
    try:
        if place is not None:
            need(place)
    except NoSchedulerError as error:
        raise ExecutionError(str(error)) from error
