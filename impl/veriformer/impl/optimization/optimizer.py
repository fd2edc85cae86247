"""Base class of optimizers: parameter groups with checked options, the step over them, state that survives saving."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from veriformer.impl import checks

Params = Iterable[Tensor] | Iterable[dict[str, Any]]


class ParameterwiseOptimizer(torch.optim.Optimizer):
    """An optimizer that updates each parameter by its own gradient and state, many of them in one `foreach` call.

    A parameter whose `grad` is `None` is skipped; its state, step count included, stands still. Subclasses say what
    an option may be (`check`) and how parameters of one dtype and device are updated (`update`).
    """

    update: Callable[[list[Tensor], list[Tensor], dict[str, Any]], None]
    """Change parameters of one dtype and device in place, each by its gradient, which is left alone."""

    def __init__(self, params: Params, **options: Any) -> None:
        super().__init__(_listed(params), options)

    def check(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options of a group as plain numbers; raise `ValueError` or `TypeError` that names a bad one."""
        return {"lr": checks.nonnegative("lr", options["lr"])}

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own: a dict of `params` and any option that is to differ."""
        params = param_group["params"]
        param_group = {**param_group, "params": _listed([params] if isinstance(params, Tensor) else params)}
        param_group.update(self.check({**self.defaults, **param_group}))
        super().add_param_group(param_group)

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what `closure`, called first with gradients on, gives."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            for params in _batches(group["params"]):
                self.update(params, [p.grad for p in params if p.grad is not None], group)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore hyper-parameters and state; state keeps the dtype it was saved in, where PyTorch would cast it."""
        super().load_state_dict(state_dict)
        saved = chain.from_iterable(group["params"] for group in state_dict["param_groups"])
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        for index, p in zip(saved, params, strict=True):
            if index in state_dict["state"]:
                self.state[p] = {key: _kept(x, p) for key, x in state_dict["state"][index].items()}


def decay_rate(name: str, value: object) -> float:
    """Return `value` as a float if it is a number in [0, 1): how much of an average is kept."""
    result = checks.number(name, value)
    if not 0 <= result < 1:
        checks.raise_for(name, "a number in [0, 1)", result, "at 1 nothing new would be seen")
    return result


def _listed(params: object) -> list[Any]:
    if isinstance(params, Tensor) or not isinstance(params, Iterable):
        checks.raise_for("params", "a list of tensors", type(params).__name__, "put the tensors into a list", TypeError)
    listed = list(params)
    if not listed:
        checks.raise_for("params", "at least one parameter", "none", "there is nothing to optimize")
    for index, p in enumerate(listed):
        _check(f"params[{index}]", p)
    return listed


def _check(name: str, p: object) -> None:
    if isinstance(p, dict):
        if "params" not in p:
            checks.raise_for(name, "a group with the key 'params'", f"keys {sorted(p)}", "name its parameters")
        return
    x = checks.tensor(name, p[1] if isinstance(p, tuple) and len(p) == 2 else p)
    if not (x.is_leaf or x.retains_grad):
        checks.raise_for(
            name, "a leaf tensor", "a computed one", "its gradient is not kept: optimize what it is made of"
        )


def _batches(params: list[Tensor]) -> Iterator[list[Tensor]]:
    """Yield the parameters that have gradients, apart by device and dtype: what one `foreach` call may take."""
    batches: dict[Any, list[Tensor]] = defaultdict(list)
    for p in params:
        if p.grad is not None:
            batches[p.device, p.dtype].append(p)
    yield from batches.values()


def _kept(x: Any, p: Tensor) -> Any:
    return x.detach().clone().to(p.device) if isinstance(x, Tensor) else x
