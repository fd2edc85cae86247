"""How pytest-xdist spreads rows: by group, so that prerequisites come first, and on after a worker that died."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController


class RowScheduling(LoadScopeScheduling):  # type: ignore[misc]  # pytest-xdist ships no types
    """Rows of one group go to one worker, in order.

    A worker that dies gives back every row it has not finished, the one that killed it too: by then the journal
    holds that row's result, so
    that the next worker passes over it. (The scheduler this builds on gives finished groups back as well, and waits
    for them for ever.)
    """

    def __init__(self, config: pytest.Config, log: object, groups: Mapping[str, str]) -> None:
        super().__init__(config, log)
        self.groups = groups

    def _split_scope(self, nodeid: str) -> str:
        key = nodeid.partition("[")[2].removesuffix("]")
        return self.groups[key]

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:  # a worker that has just replaced a dead one may not have collected yet
            super()._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Take a worker out; returns a row it had not finished, if there is one."""
        left: OrderedDict[str, dict[str, bool]] = OrderedDict()
        for scope, unit in self.assigned_work.pop(node).items():
            open_rows = {nodeid: False for nodeid, done in unit.items() if not done}
            if open_rows:
                left[scope] = open_rows
        self.workqueue.update(left)
        for other in self.assigned_work:
            self._reschedule(other)
        return next((nodeid for unit in left.values() for nodeid in unit), None)
