"""Arguments of the command line that can be found unusable before anything runs."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
import torch


def check_device(name: str) -> None:
    """Raise click.BadParameter unless PyTorch has this device here, and tensors on it hold numbers."""
    try:
        ones = torch.ones(1, device=name)
    except Exception as error:  # each kind of device has exceptions of its own
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise click.BadParameter(f"{name!r} cannot be used here: {reason}", param_hint="--device") from error
    if ones.is_meta:
        raise click.BadParameter("'meta' holds no numbers to be judged", param_hint="--device")


def output(ctx: click.Context, parameter: click.Parameter, path: Path | None) -> Path | None:
    """A file that can be written; its folder is made."""
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
