"""``veriformer bench verification``: where the time of a verification goes."""

from __future__ import annotations

import os
import sys

import click

from veriformer.bench.commands import options
from veriformer.bench.commands.options import refuse

PROFILES = ("quick", "default", "thorough")


@click.command()
@click.argument("target", default="impl")
@click.option(
    "--profile", type=click.Choice(PROFILES), default="quick", show_default=True, help="Profile of the verification."
)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default="cores", help="Workers.")
@click.option("--only", multiple=True, metavar="SELECT", help="As for verify.")
def verification(target: str, profile: str, jobs: int, only: tuple[str, ...]) -> None:
    """Time a verification, and show where its time goes: to examples of which operation, or to starting up.

    \b
    Exit status: 0 measured, 2 unusable arguments or target.
    """
    options.check_targets([target])
    from rich.console import Console

    from veriformer.bench.verification import RunError, measure, show

    try:
        found = measure(target, profile, jobs, only)
    except RunError as error:
        refuse(error)
    show(found, Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 120))
