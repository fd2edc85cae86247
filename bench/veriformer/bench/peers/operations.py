"""Single operations beside PyTorch's own functions: the norms and the loss, forward and backward."""

from __future__ import annotations

from collections.abc import Iterator

from veriformer.bench.document import Peer
from veriformer.bench.peers.case import Question, Schedule
from veriformer.bench.peers.interleaved_benchmark import OURS
from veriformer.bench.targets import find
from veriformer.bench.timing.workloads import Workload
from veriformer.bench.timing.workloads import find as find_workload

TORCH = "torch.nn.functional"


def rowwise(name: str, sizes: dict[str, int], schedule: Schedule) -> Iterator[Peer]:
    """Norms of N rows of width d, and the loss of N rows of d logits."""
    for operation in ("layer_norm", "rms_norm", "cross_entropy"):
        for backward in (False, True):
            workload = find_workload({"family": [operation, "all sizes"], "backward": backward, "workload": ""})
            assert isinstance(workload, Workload)
            what = (
                f"{operation} of {sizes['N']} rows of {sizes['d']}, {'forward and backward' if backward else 'forward'}"
            )
            sides = {side: workload.build(find(target), sizes) for side, target in ((OURS, "impl"), (TORCH, "torch"))}
            question = Question(case=name, what=what, theirs=TORCH, quantity="ms")
            times, conditions = schedule.run(what, sides)
            yield question.timed(times.time(TORCH), {side: 1e3 * times.of(side) for side in sides}, conditions)
