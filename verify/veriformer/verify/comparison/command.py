"""The command ``compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from veriformer.spec.refused_arguments import FiniteRange
from veriformer.verify.comparison import SECONDS, compare
from veriformer.verify.engine import arguments
from veriformer.verify.engine.arguments import ExecutionError, check_scheduler
from veriformer.verify.targets import lookup
from veriformer.verify.targets.error import TargetError


@click.command("compare")
@click.argument("reference")
@click.argument("candidate")
@click.option("--inputs", metavar="FILE", help="File with get_inputs(), or FILE:FUNCTION. [default: REFERENCE's own]")
@arguments.DEVICE
@click.option(
    "--timeout",
    "seconds",
    type=FiniteRange(min=0, min_open=True),
    default=SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Time after which nothing new is begun.",
)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write results.json here.")
@click.option(
    "--scheduler",
    metavar="ADDRESS|FILE|local",
    help="Compare on a worker of a Dask scheduler instead.",
)
@click.option(
    "--files",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="With --scheduler: a wheel, module or folder that both need there, beside what they import themselves; may be "
    "repeated.",
)
def command(
    reference: str,
    candidate: str,
    inputs: str | None,
    device: str,
    seconds: float,
    json_file: Path | None,
    scheduler: str | None,
    files: tuple[Path, ...],
) -> None:
    """Do two implementations of anything agree?

    REFERENCE and CANDIDATE are files (path/to/mine.py), modules (pkg.mod) or attributes (pkg.mod:thing,
    path/to/mine.py:thing): functions, or classes of modules. A problem of KernelBench is REFERENCE as it is (Model,
    get_inputs, get_init_inputs), its solution CANDIDATE (ModelNew).

    Inputs are drawn by get_inputs(), or fit the signature, and are widened: other values, sizes, layouts, formats and
    modes, and gradients. What the two may differ by is measured: how far rounding alone moves the reference.

    \b
    Examples:
      veriformer compare problem.py solution.py
      veriformer compare torch.nn.functional:silu mine.py:silu --json out/silu.json

    \b
    Exit status: 0 they agree (advice aside), 1 they differ, 2 unusable arguments or target, 3 no verdict: no inputs
    that the reference takes, or noise so large that nothing can be said, 130 interrupted.
    """
    if json_file is not None and json_file.parent.exists() and not json_file.parent.is_dir():
        raise click.UsageError(f"--json: {json_file.parent} is no folder")
    try:
        check_scheduler(scheduler)
        for word in (reference, candidate, *([inputs] if inputs else [])):
            lookup.check(word)
        # These import PyTorch, which takes longer than all that is checked before.
        from veriformer.verify.comparison.terminal import show
        from veriformer.verify.engine.remote import cluster
        from veriformer.verify.presentation.progress import console

        if scheduler is None:
            found = compare(reference, candidate, inputs=inputs, device=device, seconds=seconds)
        else:
            asked: dict[str, Any] = {"inputs": inputs, "device": device, "seconds": seconds, "files": files}
            with cluster(scheduler, jobs=1, device=device) as place:
                from veriformer.verify.comparison.remote import compare_there

                found = compare_there(reference, candidate, scheduler=place, say=console().print, **asked)
    except (TargetError, ExecutionError) as error:
        raise click.UsageError(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    if json_file is not None:
        found.write(json_file)
    show(found, console(), saved=str(json_file) if json_file else None)
    raise SystemExit(found.exit_status)
