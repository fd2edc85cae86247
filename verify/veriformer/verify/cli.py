"""The command ``verify``."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, NoReturn

import click

from veriformer.spec import exit_statuses
from veriformer.spec.refused_arguments import FiniteRange
from veriformer.spec.requirements.selection import UnknownSelectionError
from veriformer.verify.commands.options import (
    ANNOTATIONS,
    BALANCE,
    FAIL_ON,
    FILES,
    PARTIAL,
    SCHEDULER,
    SEED,
    SHARD,
    ListsWords,
    canonical_dtypes,
    check_shard,
    refuse,
    say,
)
from veriformer.verify.commands.request import Request
from veriformer.verify.engine import arguments
from veriformer.verify.engine.arguments import ExecutionError
from veriformer.verify.engine.journal import JournalError
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.waivers import WaiverError
from veriformer.verify.targets.error import TargetError

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command(cls=ListsWords, epilog=exit_statuses.told())
@click.argument("target")
@click.option(
    "--only", multiple=True, metavar="SELECT…", help="Requirements, operations, equation numbers (24a, 20-23) or globs."
)
@click.option(
    "--profile", type=click.Choice(list(PROFILES)), default="default", show_default=True, help="How much work."
)
@arguments.JOBS
@SEED
@click.option(
    "--dtype",
    "dtype",
    multiple=True,
    callback=canonical_dtypes,
    metavar="NAME…",
    help="fp64, fp32, bf16, fp16. [default: all]",
)
@click.option(
    "--timeout",
    type=FiniteRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Time a row may take. [default: the profile's]",
)
@arguments.DEVICE
@click.option(
    "--waivers",
    "waiver_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file of known failures.",
)
@click.option("--json", "json_file", type=_FILE, callback=arguments.output, help="Write results.json here.")
@click.option("--junit", type=_FILE, callback=arguments.output, help="Write JUnit XML here.")
@click.option("--html", type=_FILE, callback=arguments.output, help="Write the conformance report here.")
@click.option("--sarif", type=_FILE, callback=arguments.output, help="Write findings as SARIF 2.1.0 here.")
@ANNOTATIONS
@click.option(
    "--strict/--no-strict",
    default=False,
    help="Advice counts as a violation, and so does whatever of the contract the target refuses.",
)
@FAIL_ON
@PARTIAL
@click.option(
    "--rows/--no-rows", "every_row", default=False, help="Show every row as well, and each violated one at once."
)
@click.option("-x", "--exitfirst", is_flag=True, help="Stop at the first row that fails: --maxfail 1.")
@click.option(
    "--maxfail", type=click.IntRange(0), default=0, metavar="N", help="Stop once so many rows have failed; 0 for never."
)
@click.option(
    "--lf/--no-lf",
    "--last-failed/--no-last-failed",
    "last_failed",
    default=False,
    help="Run only the rows that failed last time, and what they rest on; all where none did.",
)
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Go on with a run that was stopped: its --json file, or the .partial file beside it.",
)
@SHARD
@BALANCE
@SCHEDULER
@FILES
def verify(**options: Any) -> NoReturn:
    """Hold an implementation against the published mathematics.

    TARGET is a file (path/to/mine.py), a module (pkg.mod), an attribute of either (path/to/mine.py:thing,
    pkg.mod:thing), or a name that ships with the suite: impl, impl:reference, impl:tiled, impl:sdpa, impl:flex,
    impl:triton (on a GPU, or with TRITON_INTERPRET=1), impl:formula, torch, torch:math, torch:flash, torch:flex,
    transformers, transformers:eager, transformers:ARCHITECTURE, x-transformers, x-transformers:flash, mutant:ID,
    variant:ID, sabotage:KIND, generic:EDIT.

    It carries operations under the names of the contract, as many as it likes, and imports nothing of ours. What it
    lacks is reported as not provided: operations, and optional arguments that a signature leaves out. In a problem of
    KernelBench with its solution (Model, ModelNew, get_inputs) the two are compared first, and ModelNew is verified
    where it is recognised.

    \b
    Examples:
      veriformer verify mine.py
      veriformer verify mine.py --only attention --dtype fp32 --profile quick
      veriformer verify torch --json out/torch.json --html out/torch.html

    Every option may also stand in the table [tool.veriformer] of pyproject.toml (profile = "quick") and in the
    environment (VERIFORMER_PROFILE=quick): the command line goes before the environment, that before the file.
    """
    request = Request(**options)
    check_shard(
        *(request.shard, request.balance, request.json_file, request.html),
        sarif=request.sarif,
        last_failed=request.last_failed,
    )
    try:
        request = request.narrowed(say)
        request.check()
        if request.scheduler is None:
            arguments.check_device(request.device)
        with request.look() or contextlib.nullcontext() as first:
            # This imports PyTorch and Hypothesis, which takes longer than all that is checked before.
            from veriformer.verify.commands.verification import verification

            status = verification(request, first)
    except (UnknownSelectionError, TargetError, JournalError, WaiverError, ExecutionError) as error:
        refuse(error)
    raise SystemExit(status)
