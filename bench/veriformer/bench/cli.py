"""The command of this package: ``bench``."""

from __future__ import annotations

import click

from veriformer.bench.commands.counts import counts
from veriformer.bench.commands.gpu import gpu_attention, tune
from veriformer.bench.commands.peers import peers
from veriformer.bench.commands.regression import aa, regression
from veriformer.bench.commands.scaling import scaling
from veriformer.bench.commands.verification import verification


@click.group()
def bench() -> None:
    """Count and time an implementation against the predictions of the specification."""


for _command in (counts, verification, peers, scaling, regression, aa, gpu_attention, tune):
    bench.add_command(_command)
