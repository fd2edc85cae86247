"""``veriformer campaign``: power that grows for as long as there is time."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from veriformer.spec.refused_arguments import FiniteRange
from veriformer.spec.requirements.selection import UnknownSelectionError
from veriformer.verify import results
from veriformer.verify.commands.options import INTERRUPTED, refuse
from veriformer.verify.engine.arguments import JOBS, LOCAL, ExecutionError, check_scheduler
from veriformer.verify.engine.campaign.plan import CampaignError, read
from veriformer.verify.engine.waivers import WaiverError
from veriformer.verify.presentation.progress import console
from veriformer.verify.results import VIOLATIONS, Result
from veriformer.verify.targets import lookup
from veriformer.verify.targets.error import TargetError

if TYPE_CHECKING:
    from veriformer.verify.engine.campaign.power import Arm

_TOLD_S = 60.0
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.argument("plan", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="PLAN.toml")
@click.option("--hours", type=FiniteRange(min=0, min_open=True), required=True, help="How long to go on.")
@JOBS
@click.option(
    "--scheduler",
    default=LOCAL,
    show_default=True,
    metavar="ADDRESS|FILE|local",
    help="Workers of a Dask scheduler; local starts one here.",
)
@click.option(
    "--files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Wheels, modules and folders that the targets need where they run; may be repeated.",
)
@click.option("--seed", metavar="N", help="Any word. [default: drawn and printed]")
@click.option("--json", "json_file", type=_FILE, help="Write the report here as JSON.")
@click.option("--markdown", "markdown_file", type=_FILE, help="Write the report here as Markdown.")
def campaign(
    plan: Path,
    hours: float,
    jobs: int,
    scheduler: str,
    files: tuple[Path, ...],
    seed: str | None,
    json_file: Path | None,
    markdown_file: Path | None,
) -> None:
    """Run targets under new seeds for some hours, most where most is still to be seen, and say what may be missed.

    PLAN.toml names targets × profiles × dtypes × devices, and a folder in which everything is kept from one campaign
    to the next: what is known of each row, and every failing and every hardest example, in Hypothesis' own database.
    Those are run again first. Time goes to the rows whose power grows most per second: by what of sizes and options
    their examples have still to cover, by how near they came to the bound, and by age.

    \b
    targets = ["impl:reference", "mine.py"]
    profiles = ["quick"]             # time a row may take, and effort to make examples smaller
    dtypes = ["fp32", "bf16"]        # default: all
    devices = ["cpu"]
    only = ["attention", "softmax"]  # default: everything
    strict = false
    waivers = "known.toml"           # beside the plan
    store = "campaign"               # the folder, beside the plan
    examples = "directory"           # or redis://host:6379/0, or github:owner/repository

    \b
    The report says what was exercised how often, what came nearest to its bound, which share of examples may fail
    without having been met (95 % confidence), and which findings are new.
    Exit status: 0 nothing is violated, 1 something is, 2 unusable arguments or target,
    3 the suite itself failed on a row, 130 interrupted.
    """
    seed = seed or str(secrets.randbelow(2**32))
    try:
        about = read(plan)
        for target in about.targets:
            lookup.check(target)
        check_scheduler(scheduler)
        device = next((name for name in about.devices if name != "cpu"), "cpu")
        # This imports PyTorch, which takes longer than all that is checked before.
        from veriformer.verify.engine.remote import cluster

        with cluster(scheduler, jobs=jobs, device=device) as place:
            from veriformer.verify.engine import remote
            from veriformer.verify.engine.campaign import report
            from veriformer.verify.engine.campaign.run import Runs

            where = remote.Place(place, files, say=lambda text: console().print(text, markup=False))
            where.say(f"campaign of {hours:g} h, seed {seed}; kept in {about.store}")
            ran = Runs(about, where, seed, hours, _teller(), date.today()).go()
    except (
        CampaignError,
        TargetError,
        ExecutionError,
        WaiverError,
        UnknownSelectionError,
    ) as error:
        refuse(error)
    found, text = report.document(ran), report.markdown(ran)
    report.validate(found)
    if json_file is not None:
        results.write_json(found, json_file)
    if markdown_file is not None:
        markdown_file.parent.mkdir(parents=True, exist_ok=True)
        markdown_file.write_text(text, encoding="utf-8")
    click.echo(text)
    if ran.stopped is not None:
        raise SystemExit(INTERRUPTED)
    raise SystemExit(3 if report.invalid(ran) else 1 if report.violated(ran) else 0)


def _teller() -> Callable[[Arm, Result], None]:
    """Return a callback that prints each violation at once, and the totals every minute."""
    told, turns, examples = time.monotonic(), 0, 0

    def tell(arm: Arm, result: Result) -> None:
        nonlocal told, turns, examples
        turns, examples = turns + 1, examples + result.examples
        if result.status in VIOLATIONS:
            console().print(f"{result.status}: {arm.row} ({arm.plan}), example {result.examples}", markup=False)
        if time.monotonic() - told >= _TOLD_S:
            told = time.monotonic()
            console().print(f"{turns} turns, {examples} examples", markup=False)

    return tell
