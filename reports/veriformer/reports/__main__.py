"""``python -m veriformer.reports``: the commands of this package."""

import click

from veriformer.reports.cli import diff, report

click.Group("veriformer.reports", commands=[report, diff])(prog_name="python -m veriformer.reports")
