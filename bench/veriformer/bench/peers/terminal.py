"""Terminal output of the benchmarks: a line for each result on standard output, progress on standard error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TextIO

from rich.console import Console
from rich.status import Status
from rich.text import Text

from veriformer.bench.document import Peer
from veriformer.bench.verdicts import Verdict

_STYLES = {
    Verdict.CONFIRMED: ("✓", "green"),
    Verdict.REFUTED: ("✗", "bold red"),
    Verdict.INCONCLUSIVE: ("?", "yellow"),
    None: ("·", "dim"),
}


class Show:
    """Shows records as they come. Use as a context."""

    def __init__(self, out: TextIO, progress: TextIO) -> None:
        self._out = Console(file=out, highlight=False, emoji=False, width=None if out.isatty() else 10_000)
        self._progress = Console(file=progress, highlight=False, emoji=False)
        self._status = Status("", console=self._progress) if progress.isatty() else None

    def __enter__(self) -> Show:
        if self._status:
            self._status.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._status:
            self._status.stop()

    def progress(self, text: str) -> None:
        """Say what is being done: every round on a terminal, every case elsewhere."""
        if self._status:
            self._status.update(text)
        elif ": round" not in text:
            self._progress.print(text, markup=False, soft_wrap=True)

    def tell(self, peer: Peer) -> Peer:
        """Show one record."""
        sign, style = _STYLES[peer.verdict]
        self._out.print(Text(f"{sign} ", style=style) + Text(line(peer)), soft_wrap=True)
        return peer

    def summarise(self, peers: Sequence[Peer]) -> None:
        """The sums."""
        goals = Counter(peer.verdict.value for peer in peers if peer.verdict)
        missing = sum(peer.ratio is None for peer in peers)
        parts = [f"{goals[verdict.value]} {verdict.value}" for verdict in Verdict if goals[verdict.value]]
        parts += [f"{missing} not measured"] if missing else []
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
