"""The command ``explain``."""

from __future__ import annotations

import click
from rich.console import Console

from veriformer.spec.explanation import show
from veriformer.verify.commands.options import refuse
from veriformer.verify.reference import UnknownNameError, explanations


@click.command()
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def explain(names: tuple[str, ...]) -> None:
    """Explain a name that a run gives or takes.

    NAME is a requirement (attention.causality), an operation (attention), an equation (24a), a claim (rope.pairing), an
    exit status (3) or a field of results.json (worst_ratio, findings.what). What several things are called is explained
    for each of them.

    \b
    Examples:
      veriformer explain attention.causality
      veriformer explain 24a rope.pairing worst_ratio
    """
    try:
        found = [one for name in names for one in explanations(name)]
    except UnknownNameError as error:
        refuse(error)
    show(found, Console(highlight=False, emoji=False))
