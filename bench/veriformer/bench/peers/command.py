"""``bench peers``: the whole of one run, as a person asks for it.

Results are shown as they come, a line for each on standard output, and progress on standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TextIO

import torch
from rich.text import Text

from veriformer.bench.document import Benchmarks, Peer, begin
from veriformer.bench.peers.turns import Case, Schedule
from veriformer.bench.terminal import Progress, console
from veriformer.bench.verdicts import SIGNS, Verdict, tally


def run(
    cases: Sequence[Case], rounds: int, seconds: float, threads: int | None, clock: str, device: str = "cpu"
) -> tuple[Benchmarks, bool]:
    """Run the cases on a device; return the benchmarks and whether they were interrupted."""
    if threads is not None:
        torch.set_num_threads(threads)
    whole = begin()
    found, interrupted = [], False
    with Show(sys.stdout, sys.stderr) as show, torch.device(device):
        schedule = Schedule(rounds, clock, show.progress, seconds)
        try:
            for case in cases:
                for one in case(schedule):
                    found.append(show.one(one))  # noqa: PERF401, for what was found before an interrupt counts
        except KeyboardInterrupt:
            interrupted = True
        show.summarise(found)
    return whole(peers=found), interrupted


class Show(Progress):
    """Shows records as they come. Use as a context."""

    def __init__(self, out: TextIO, progress: TextIO) -> None:
        super().__init__(progress)
        self._out = console(out)

    def progress(self, text: str) -> None:
        """Say what is being done: every round on a terminal, every case elsewhere."""
        if not self.tell(text) and ": round" not in text:
            self.console.print(text, markup=False, soft_wrap=True)

    def one(self, peer: Peer) -> Peer:
        """Show one record."""
        sign, style = SIGNS[peer.verdict]
        self._out.print(Text(f"{sign} ", style=style) + Text(line(peer)), soft_wrap=True)
        return peer

    def summarise(self, peers: Sequence[Peer]) -> None:
        """Print the sums."""
        missing = sum(peer.ratio is None for peer in peers)
        parts = [*tally(peers, Verdict), *([f"{missing} not measured"] if missing else [])]
        self._out.print(", ".join(parts) or "no goal was judged", markup=False)


def line(peer: Peer) -> str:
    """Format one record as one line."""
    verdict = peer.verdict.value if peer.verdict else "measured" if peer.ratio is not None else "not measured"
    head = f"{verdict:<12}  {peer.case}  {peer.what}, {peer.quantity}, ours / {peer.theirs}: "
    return head + "; ".join(_found(peer))


def _found(peer: Peer) -> list[str]:
    parts = []
    if peer.ratio is not None and peer.interval is not None and peer.noise is not None:
        low, high = peer.interval
        parts.append(f"{peer.ratio:.3f}" if low == high else f"{peer.ratio:.3f} [{low:.3f}, {high:.3f}]")
    if peer.goal:
        parts.append(f"goal {peer.goal.kind} {peer.goal.ratio:g}")
    parts += [" against ".join(f"{value:,.4g}" for value in peer.values.values())] if peer.values else []
    if peer.conditions and peer.noise:
        c = peer.conditions
        parts.append(f"noise ±{100 * (peer.noise - 1):.1f} %, {c.rounds} rounds, threads: {c.threads}, {c.clock} clock")
        parts.append(f"load {c.load[0]:.1f} to {c.load[1]:.1f}")
    return parts + ([peer.reason] if peer.reason else [])
