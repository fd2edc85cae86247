"""Class indices as the losses and calibration take them: int64, one to each row of scores."""

import torch
from torch import Tensor

from veriformer.impl import checks


def check_classes(name: str, target: object, scores: Tensor, ignore_index: int | None = None, *, of: str) -> Tensor:
    """Return which entries of `target [...]` count; refuse what is no class of `scores [..., V]`, named `of`.

    Classes are looked at where Python may look at them, on ordinary CPU tensors.
    """
    if not isinstance(target, Tensor):
        checks.raise_for(name, "a torch.Tensor", type(target).__name__, "pass int64 classes", TypeError)
    if target.dtype != torch.int64:
        checks.raise_for(name, "int64 classes", target.dtype, f"use {name}.long()", TypeError)
    if target.device != scores.device:
        checks.raise_for(name, f"device {scores.device}, where {of} lives", target.device, "move one of the two first")
    if target.shape != scores.shape[:-1]:
        expected = f"shape {tuple(scores.shape[:-1])}, that of {of} without its last axis"
        checks.raise_for(name, expected, f"shape {tuple(target.shape)}", f"give one class to each row of {of}")
    counted = torch.ones_like(target, dtype=torch.bool) if ignore_index is None else target != ignore_index
    refuse_outside(name, target, scores.shape[-1], counted, ignore_index)
    return counted


def refuse_outside(name: str, target: Tensor, V: int, counted: Tensor, ignore_index: int | None = None) -> None:
    """Refuse classes outside [0, V) among those that count."""
    if may_refuse(target) and bool((counted & ((target < 0) | (target >= V))).any()):
        expected = f"classes in [0, {V})" + ("" if ignore_index is None else f" or ignore_index={ignore_index}")
        got = f"values from {int(target.min())} to {int(target.max())}"
        checks.raise_for(name, expected, got, "check the vocabulary")


def check_scores(name: str, x: Tensor) -> None:
    """Refuse what is no floating-point tensor `[..., V]` with at least one class."""
    if checks.tensor(name, x).ndim == 0 or x.shape[-1] == 0:
        got = f"shape {tuple(x.shape)}"
        checks.raise_for(name, "shape [..., V] with V of 1 or more", got, "there is nothing to choose from no class")


def check_target_probabilities(logits: Tensor, target: Tensor) -> None:
    """Refuse a target that is not one probability for each class of `logits [..., V]`."""
    checks.tensor("target", target)
    if target.device != logits.device:
        got = target.device
        checks.raise_for("target", f"device {logits.device}, where logits lives", got, "move one of the two first")
    if target.shape != logits.shape:
        expected = f"probabilities of shape {tuple(logits.shape)}, as logits has"
        checks.raise_for("target", expected, f"shape {tuple(target.shape)}", "give one probability to each class")
    check_probabilities("target", target)


def check_probabilities(name: str, x: Tensor) -> None:
    """Refuse entries outside [0, 1]."""
    if may_refuse(x) and not bool(((x >= 0) & (x <= 1)).all()):
        checks.raise_for(name, "probabilities in [0, 1]", "values outside", f"normalise {name} first")


def may_refuse(x: Tensor) -> bool:
    """Tell whether to look at values: on an accelerator that would make the host wait for it at every step."""
    return checks.can_read_values(x) and x.device.type == "cpu"
