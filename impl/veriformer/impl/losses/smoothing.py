"""Label smoothing: targets that leave every class a share."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.losses.targets import refuse_outside

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


def smooth_labels(target: Tensor, num_classes: int, alpha: float) -> Tensor:
    r"""Turn classes into probabilities that are not quite certain.

    $$y_c = (1 - \alpha)\, [c = t] + \alpha / V$$

    Each row sums to 1; α = 0 gives one-hot rows, α = 1 uniform ones. Cross-entropy against these rows is cross-entropy
    with `label_smoothing=alpha`.

    Shapes: `target [...]` of any integer dtype → `[..., num_classes]`, of the default dtype, on the CPU. Raises
    `ValueError` for classes outside [0, V), fewer than one class and `alpha` outside [0, 1], `TypeError` for targets
    that are not integers. Equation 48.
    """
    V = checks.integer("num_classes", num_classes, minimum=1)
    alpha = checks.probability("alpha", alpha)
    if not isinstance(target, Tensor):
        checks.raise_for("target", "a torch.Tensor", type(target).__name__, "pass classes", TypeError)
    if target.dtype not in _INTEGERS:
        checks.raise_for("target", "integer classes", target.dtype, "use target.long()", TypeError)
    t = target.long().cpu()
    refuse_outside("target", t, V, torch.ones_like(t, dtype=torch.bool))
    y = torch.full((*t.shape, V), alpha / V, dtype=torch.get_default_dtype(), device=t.device)
    return y.scatter(-1, t[..., None], 1 - alpha + alpha / V)
