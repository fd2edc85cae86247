"""``veriformer bench peers``: ours beside what others would use."""

from __future__ import annotations

from pathlib import Path

import click

from veriformer.bench.commands.options import DEVICE, JSON, check_device, refuse, write
from veriformer.spec.refused_arguments import FiniteRange


@click.command()
@click.argument("cases", nargs=-1, metavar="[CASE]…")
@click.option("--rounds", type=click.IntRange(min=6), default=15, show_default=True, help="Turns of each side.")
@click.option(
    "--seconds",
    type=FiniteRange(0, min_open=True),
    default=20,
    show_default=True,
    help="After this time a comparison begins no further round, once it has 6.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Threads of PyTorch; its own number by default.")
@click.option(
    "--clock",
    type=click.Choice(["wall", "cpu"]),
    default="wall",
    show_default=True,
    help="cpu: seconds of this process alone, for a machine that others use; fair between sides of one thread.",
)
@DEVICE
@JSON
def peers(
    cases: tuple[str, ...],
    rounds: int,
    seconds: float,
    threads: int | None,
    clock: str,
    device: str,
    json_file: Path | None,
) -> None:
    """Time ours beside what others would use, on this processor or a GPU, as ratios of sides that take turns.

    CASE is one of training-128, training-384, compiled-128, compiled-384, vocabulary, decode-1, decode-8, prefill-1,
    prefill-8, rowwise, tiled, adamw; all of them where none is named. On a GPU (--device cuda), of GPT-2's own size:
    training-768, compiled-768, decode-768-1, decode-768-8, decode-768-64, prefill-768-8, adamw-768. Sides: a plain
    torch.nn GPT, GPT2LMHeadModel of transformers and a decoder of x-transformers (if they are installed), SDPA,
    torch.nn.functional, torch.optim.AdamW, and what a large matrix product and one reading of memory reach here.

    In each round every side runs once, in random order, and ours twice: the ratio of ours to itself is the noise, and a
    goal is confirmed or refuted only where neither it nor the interval of the median (95 %) leaves a doubt.

    \b
    Exit status: 0 no goal is refuted, 1 at least one is, 2 unusable arguments, 130 interrupted, with what was finished
    shown and written.
    """
    from veriformer.bench.peers.catalogue import UnknownCaseError, cases_of, find

    try:
        chosen = [find(name) for name in dict.fromkeys(cases or cases_of(device))]
    except UnknownCaseError as error:
        refuse(error)
    check_device(device)
    from veriformer.bench.peers import command

    found, interrupted = command.run(chosen, rounds, seconds, threads, clock, device)
    write(found, json_file)
    raise SystemExit(130 if interrupted else found.exit_status)
