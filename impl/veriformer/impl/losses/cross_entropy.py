"""Cross-entropy: how surprised the logits are by the targets."""

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.losses.targets import check_classes, check_scores, check_target_probabilities, may_refuse
from veriformer.impl.precision import upcast

_REDUCTIONS = ("none", "sum", "mean")


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    r"""Score logits against class indices or probabilities.

    $$\ell = -\sum_c q_c \log p_c, \quad p = \mathrm{softmax}(z), \quad q = (1 - \alpha)\, t + \alpha / V$$

    with $t$ the one-hot target, or the probabilities given. The gradient is $p \sum_c q_c - q$, so $p - y$ for a class.

    Shapes: `logits [..., V]`; `target [...]` int64 classes, or `[..., V]` floating-point probabilities, whose rows
    need not sum to 1. Targets have no gradient. `reduction` is `"none"` (shape `[...]`, 0 at ignored targets), `"sum"`,
    or `"mean"` over the targets that are not ignored; with none of those the loss and its gradient are 0.
    `ignore_index` may be any integer, also a valid class, and plays no part for probabilities. A logit of −∞
    contributes nothing where its target has probability 0, and makes the loss infinite elsewhere.

    Dtypes: float64, float32, bfloat16, float16; halves are computed in float32, and the result has the dtype of
    `logits`. Raises `ValueError` for shapes that do not match, `V = 0`, classes outside [0, V), probabilities or
    `label_smoothing` outside [0, 1], and unknown reductions; `TypeError` for wrong dtypes. Equations 2, 38 and 48.
    """
    alpha = checks.probability("label_smoothing", label_smoothing)
    if reduction not in _REDUCTIONS:
        checks.raise_for("reduction", f"one of {_REDUCTIONS}", repr(reduction), "choose one of them")
    loss, count = token_losses(logits, target, ignore_index, alpha)
    if reduction != "none":
        loss = loss.sum()
    if reduction == "mean":
        loss = loss / count.clamp(min=1)
    return loss.to(logits.dtype)


def token_losses(
    logits: Tensor, target: Tensor, ignore_index: int, alpha: float, name: str = "target"
) -> tuple[Tensor, Tensor]:
    """Return the losses `[...]` in the accumulation dtype, 0 where ignored, and how many of them count.

    `name` is what a refusal calls the target.
    """
    ignore_index = checks.integer("ignore_index", ignore_index)
    check_scores("logits", logits)
    if isinstance(target, Tensor) and target.is_floating_point():
        return _against_probabilities(logits, target, alpha)
    counted = check_classes(name, target, logits, ignore_index, of="logits")
    return _against_classes(logits, target, counted, alpha)


def _against_classes(logits: Tensor, target: Tensor, counted: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    z, ignoring = upcast(logits), not (may_refuse(target) and bool(counted.all()))
    if ignoring:  # what an ignored row holds reaches neither loss nor gradient; the copy costs as much as the softmax
        ignored = ~counted
        z = z.masked_fill(ignored[..., None], 0)
    log_p = torch.log_softmax(z, -1)  # [..., V]
    y = target.masked_fill(ignored, 0) if ignoring else target
    loss = -log_p.gather(-1, y[..., None]).squeeze(-1)
    if alpha:
        loss = (1 - alpha) * loss if alpha < 1 else torch.zeros_like(loss)
        loss = loss - alpha * log_p.mean(-1)
    return loss.masked_fill(ignored, 0) if ignoring else loss, counted.sum()


def _against_probabilities(logits: Tensor, target: Tensor, alpha: float) -> tuple[Tensor, Tensor]:
    check_target_probabilities(logits, target)
    log_p = torch.log_softmax(upcast(logits), -1)  # [..., V]
    V = logits.shape[-1]
    q = (1 - alpha) * target.detach().to(log_p.dtype) + alpha / V
    # 0 · (−∞) is NaN, but a class that cannot occur costs nothing.
    loss = -torch.where(q > 0, q * log_p, 0).sum(-1)
    return loss, torch.tensor(loss.numel(), device=loss.device)
