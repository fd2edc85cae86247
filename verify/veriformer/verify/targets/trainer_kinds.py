"""Objects that train, judged by laws alone: any optimizer, and any schedule of its rates."""

from __future__ import annotations

from collections.abc import Mapping

FIRST: Mapping[str, str] = {"optimizer": "params", "lr_scheduler": "optimizer"}
"""By operation, the argument that it is given first."""

OPERATIONS = tuple(FIRST)
"""``optimizer(params, **options)`` gives a ``torch.optim.Optimizer``; ``lr_scheduler(optimizer)`` gives an
``LRScheduler`` of it."""
