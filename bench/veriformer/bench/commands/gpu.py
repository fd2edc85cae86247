"""``veriformer bench gpu-attention`` and ``veriformer bench tune``: kernels of attention on a GPU, and their tiles."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import date
from pathlib import Path

import click

from veriformer.bench.commands.options import refuse
from veriformer.spec import suite


@click.command("gpu-attention")
@click.option("--length", "lengths", type=click.IntRange(min=16), multiple=True, help="n; 512 to 16384 by default.")
@click.option("--width", "widths", type=click.IntRange(16, 256), multiple=True, help="d; 64 and 128 by default.")
@click.option("--dtype", type=click.Choice(["bfloat16", "float16"]), default="bfloat16", show_default=True)
@click.option("--rounds", type=click.IntRange(min=4), default=30, show_default=True, help="Turns of each kernel.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all rates here.")
def gpu_attention(
    lengths: tuple[int, ...], widths: tuple[int, ...], dtype: str, rounds: int, json_file: Path | None
) -> None:
    """Time attention on a GPU, forward and backward: our Triton kernels beside PyTorch's kernels.

    Each kernel (SDPA's flash, cuDNN and efficient kernels, FlexAttention) is judged against the specification
    first, output and gradients; a wrong one is not timed. Then all take turns in random order, the L2 cache flushed
    between them. Rates count the products of visible pairs: 4 n² d forward and 10 n² d backward, half when causal.

    \b
    Exit status: 0 timed, 1 a kernel is wrong, 2 unusable arguments, or no GPU to time on, 130 interrupted, with what
    was timed shown and written.
    """
    import torch

    if not torch.cuda.is_available():
        refuse("gpu-attention: expected a CUDA device, got none; run it on a machine with one")
    from veriformer.bench import gpu_attention as timed

    found, interrupted = [], False
    try:
        for rates in timed.measure(lengths or timed.LENGTHS, widths or timed.WIDTHS, dtype, rounds):
            click.echo(timed.line(rates))
            found += rates
    except RuntimeError as error:
        refuse(error)
    except KeyboardInterrupt:
        interrupted = True
    if json_file is not None:
        _write_rates([rate.to_dict() for rate in found], json_file)
    raise SystemExit(130 if interrupted else int(any(rate.wrong for rate in found)))


def _write_rates(rates: list[dict[str, object]], file: Path) -> None:
    _write({"rates": rates}, file)


def _write(found: dict[str, object], file: Path) -> None:
    import torch

    from veriformer.bench.document import environment

    device = {"device": torch.cuda.get_device_name()}
    record = {"suite": suite.record(), "environment": environment() | device, **found}
    try:
        file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        refuse(f"--json: expected a file that can be written: {error}")


@click.command()
@click.option("--width", "widths", type=click.IntRange(16, 256), multiple=True, help="d; 64, 128 and 256 by default.")
@click.option("--dtype", type=click.Choice(["bfloat16", "float16"]), default="bfloat16", show_default=True)
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path), help="Write all tries here.")
def tune(widths: tuple[int, ...], dtype: str, json_file: Path | None) -> None:
    """Search the fastest tiles of our attention kernels on this GPU, and print them as an entry for flash/launch.py.

    \b
    veriformer bench tune                           minutes for each width
    veriformer bench tune --width 128 --json t.json

    From the tiles of the table on, each kernel (forward, and the gradients of queries, of keys and of a bias) goes to
    its fastest neighbour (rows, columns, warps or stages changed by one step) until none is faster. In each, output and
    gradients are judged against the specification first, full and causal: tiles with a wrong result, or larger
    than the card's shared memory, are not timed. Each try is told on standard error, as it is made.

    The table is TABLES in impl/veriformer/impl/attention_backends/flash/launch.py, by bytes of shared memory that a
    card gives a program. Put the entry there, in the place of one with as many, or before the first with fewer; then
    run `nox -s kernels`, which compiles the kernels in the new tiles.

    \b
    Exit status: 0 tuned, 1 no tiles could be timed, 2 unusable arguments, or no GPU to time on, 130 interrupted, with
    what was found shown and written.
    """
    import torch

    if not torch.cuda.is_available():
        refuse("tune: expected a CUDA device, got none; run it on a machine with one")
    from veriformer.bench import tiles

    tried: list[tiles.Tried] = []

    def tell(one: tiles.Tried) -> None:
        tried.append(one)
        click.echo(str(one), err=True)

    interrupted = False
    try:
        for width in widths or (64, 128, 256):
            tiles.tune(width, dtype, tell)
    except RuntimeError as error:
        refuse(error)
    except KeyboardInterrupt:
        interrupted = True
    tuned = tiles.fastest(tried)
    versions = f"PyTorch {torch.__version__}, Triton {tiles.triton_version()}, {date.today()}"
    if tuned:
        click.echo(tiles.table(tuned, f"{torch.cuda.get_device_name()}, {versions}, {dtype}"))
    if json_file is not None:
        chosen = [{"width": width, **asdict(launch)} for width, launch in tuned.items()]
        found = {"dtype": dtype, "triton": tiles.triton_version(), "date": str(date.today())}
        _write({**found, "tried": [one.to_dict() for one in tried], "chosen": chosen}, json_file)
    raise SystemExit(130 if interrupted else int(not tuned))
