"""An optimizer and faults of it, each of which breaks one law of any optimizer first."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Right(torch.optim.Optimizer):
    """Steps along the sign of an average, divided by a count: simple, with every option that a law asks for."""

    def __init__(
        self,
        params: Any,
        lr: float = 0.01,
        beta: float = 0.75,
        weight_decay: float = 0.0,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
    ) -> None:
        own = {"lr": lr, "beta": beta, "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach}
        super().__init__(params, own)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        loss = self.loss_of(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.one_step(p, -p.grad if group["maximize"] else p.grad, group)
                else:
                    self.skip(p, group)
        return loss

    def loss_of(self, closure: Any) -> Any:
        if closure is None:
            return None
        with torch.enable_grad():
            return closure()

    def skip(self, p: Tensor, group: Any) -> None:
        """Do nothing to a parameter without a gradient."""

    def kept(self, p: Tensor) -> dict[str, Any]:
        return self.state[p]

    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        state = self.kept(p)
        if not state:
            state["mean"], state["step"] = torch.zeros_like(p), 0
        state["step"] += 1
        state["mean"].mul_(group["beta"]).add_(g, alpha=1 - group["beta"])
        p.mul_(1 - group["lr"] * group["weight_decay"])
        rate = group["lr"] / state["step"] ** 0.5
        p.sub_(self.direction(state["mean"], group) * rate)

    def direction(self, mean: Tensor, group: Any) -> Tensor:
        return mean.sign()


class LeavesGradients(Right):
    def zero_grad(self, set_to_none: bool = True) -> None:
        for p in self.param_groups[0]["params"][1:]:
            p.grad = None


class ChangesGradients(Right):
    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        super().one_step(p, g.mul_(0.5), group)


class DecaysSkipped(Right):
    def skip(self, p: Tensor, group: Any) -> None:
        p.mul_(1 - group["lr"] * 0.1)


class CountsSkipped(Right):
    def skip(self, p: Tensor, group: Any) -> None:
        if self.state[p]:
            self.state[p]["step"] += 1


class Unsaved(Right):
    """Optimizer whose averages lie beside the state."""

    def kept(self, p: Tensor) -> dict[str, Any]:
        if not hasattr(self, "beside"):
            self.beside: dict[Tensor, Any] = {}
        return self.beside.setdefault(p, {})


class UnsavedCount(Right):
    """The average is saved; the count begins anew where it is loaded."""

    def load_state_dict(self, state_dict: Any) -> None:
        super().load_state_dict(state_dict)
        for state in self.state.values():
            state["step"] = 0


class NarrowState(Right):
    """The average is kept in less than its parameter's precision, which loading changes."""

    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        super().one_step(p, g, group)
        self.state[p]["mean"] = self.state[p]["mean"].float()


class SharedCount(Right):
    """Optimizer with one count for all parameters, taken up once a step: right while all have gradients."""

    steps = 0

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        self.param_groups[0]["count"] = self.param_groups[0].get("count", 0) + 1
        return super().step(closure)

    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        state = self.state[p]
        if state:
            state["step"] = self.param_groups[0]["count"] - 1
        super().one_step(p, g, group)
        state["step"] = self.param_groups[0]["count"]


class ByPosition(Right):
    """State is found by the place of a parameter among those that have gradients."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        self.place = -1
        return super().step(closure)

    def kept(self, p: Tensor) -> dict[str, Any]:
        self.place += 1
        every = [x for group in self.param_groups for x in group["params"]]
        fitting = [x for x in every[self.place :] if x.shape == p.shape]
        return self.state[(fitting or [p])[0]]


class RateOfFirstGroup(Right):
    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        super().one_step(p, g, {**group, "lr": self.param_groups[0]["lr"]})


class DecayOfDefaults(Right):
    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        super().one_step(p, g, {**group, "weight_decay": self.defaults["weight_decay"]})


class FirstGroupAlone(Right):
    """Only the first group's parameters are decayed, as where a loop stands in the wrong block."""

    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        lr = group["lr"] if group is self.param_groups[0] else group["lr"] * 0.5
        super().one_step(p, g, {**group, "lr": lr})


class PlainAdded(Right):
    """A group that is added later takes the options of the defaults."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group({"params": param_group["params"]} if self.state else param_group)


class ClosureUnused(Right):
    def loss_of(self, closure: Any) -> Any:
        return None


class ClosureWithoutGradients(Right):
    def loss_of(self, closure: Any) -> Any:
        return closure() if closure is not None else None


class LossLost(Right):
    def loss_of(self, closure: Any) -> Any:
        super().loss_of(closure)


class OtherForeach(Right):
    def direction(self, mean: Tensor, group: Any) -> Tensor:
        return mean.sign() * (1 + 1e-4) if group["foreach"] else mean.sign()


class MovesWithoutRate(Right):
    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        super().one_step(p, g, {**group, "lr": group["lr"] + 1e-9})


class RateReadOnce(Right):
    """The rate of the constructor counts, of every group."""

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        super().add_param_group(param_group)
        self.param_groups[-1]["first"] = self.param_groups[-1]["lr"]

    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        super().one_step(p, g, {**group, "lr": group["first"] if group["lr"] else 0.0})


class MaximizesDecay(Right):
    def one_step(self, p: Tensor, g: Tensor, group: Any) -> None:
        sign = -1.0 if group["maximize"] else 1.0
        super().one_step(p, g, {**group, "weight_decay": sign * (group["weight_decay"] or 0.125)})


class Threshold(Right):
    """Steps along the sign, and less where the average has become small, as with a floor that was meant as epsilon."""

    def direction(self, mean: Tensor, group: Any) -> Tensor:
        return mean / mean.abs().clamp(min=1e-3)


class MixesParameters(Right):
    """Optimizer whose last parameter of a step leaks into the next one, in the order of the list."""

    last: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        self.last = None
        return super().step(closure)

    def direction(self, mean: Tensor, group: Any) -> Tensor:
        before, self.last = self.last, mean.flatten()[:1].clone()
        return mean.sign() if before is None else mean.sign() + before.sign() * 0.01


FAULTS: dict[type[Right], str] = {
    LeavesGradients: "contract",
    ChangesGradients: "gradients_kept",
    DecaysSkipped: "skipped",
    CountsSkipped: "skipped",
    Unsaved: "resume",
    UnsavedCount: "resume",
    NarrowState: "resume",
    SharedCount: "own_steps",
    ByPosition: "skipped",
    MixesParameters: "order",
    FirstGroupAlone: "groups",
    RateOfFirstGroup: "group_options",
    DecayOfDefaults: "group_options",
    PlainAdded: "added",
    ClosureUnused: "closure",
    ClosureWithoutGradients: "closure",
    LossLost: "closure",
    OtherForeach: "variants",
    MovesWithoutRate: "no_rate",
    RateReadOnce: "rate",
    MaximizesDecay: "maximize",
    Threshold: "scale",
}
"""By faulty optimizer, the law that must be the first to fail."""
