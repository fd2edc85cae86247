"""A training step with many classes, where the logits of all tokens weigh more than all else."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch._subclasses.fake_tensor import FakeTensorMode

from veriformer.bench.document import Peer
from veriformer.bench.metered_costs import NotCountable, count_whole_peak_bytes
from veriformer.bench.peers import training
from veriformer.bench.peers.case import Question, Schedule, at_least, at_most
from veriformer.bench.peers.interleaved_benchmark import OURS
from veriformer.bench.peers.sizes import Sizes


def chunked(name: str, sizes: Sizes, schedule: Schedule) -> Iterator[Peer]:
    """Ours, whose logits never exist all at once, beside the baseline: peak memory first, then speed."""
    what = f"training step at vocabulary {sizes.vocabulary}, eager"
    memory = Question(case=name, what=what, theirs=training.PLAIN, quantity="peak bytes", goal=at_most(0.35))
    try:
        schedule.tell(f"{what}: counting memory")
        yield memory.counted(*(peak_bytes(make, sizes) for make in (training.ours, training.plain)))
    except NotCountable as error:
        yield memory.unanswered(error)
    speed = Question(case=name, what=what, theirs=training.PLAIN, quantity="tokens/s", goal=at_least(1.5))
    sides = {OURS: training.ours(sizes), training.PLAIN: training.plain(sizes)}
    times, conditions = schedule.run(what, sides)
    shown = {side: sizes.tokens / times.of(side) for side in sides}
    yield speed.timed(times.speed(training.PLAIN), shown, conditions)


def peak_bytes(make: Callable[[Sizes], training.Step], sizes: Sizes) -> int:
    """Bytes at the worst moment of a step, parameters and averages of the optimizer included. Raises NotCountable."""
    with FakeTensorMode():
        step = make(sizes)
        step()  # the averages come with the first step
        groups = step.optimizer.param_groups
        held = [p for group in groups for p in group["params"]]
        held += [x for state in step.optimizer.state.values() for x in state.values() if hasattr(x, "untyped_storage")]
        return count_whole_peak_bytes(step, [*held, step.ids, step.labels])
