"""The faults, one kernel per operation concerned, by the bug that each repeats.

Every kernel is a correct base with one stage exchanged. What the bug was, where, and where it is documented stands in
``known_bugs.json`` under the same identifier.
"""

from __future__ import annotations

from veriformer.verify.mutants.faults import attention, dropout, flash, layers, masks, scores
from veriformer.verify.targets.front import Kernel

KERNELS: dict[str, dict[str, Kernel]] = {
    **scores.KERNELS,
    **layers.KERNELS,
    **masks.KERNELS,
    **attention.KERNELS,
    **dropout.KERNELS,
    **flash.KERNELS,
}
