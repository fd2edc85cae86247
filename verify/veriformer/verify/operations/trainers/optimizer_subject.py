"""Any optimizer under test: how it is stepped, which options it has, and whether parameters are its own affair each."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from veriformer.verify.forms.trainer_calls import Stepping, find_stepping, steps
from veriformer.verify.scripts.optimizer_ways import drive_any_optimizer
from veriformer.verify.targets.target import Target

KERNELS = ("foreach", "fused", "capturable")
"""Options that choose among ways of computing the same step."""

_NO_OPTION = (*KERNELS, "differentiable", "maximize", "lr", "params")
_PLAIN_STEPS = 8
"""Steps of the plain runs by which a family is told: some warm up over the first five."""


@dataclass
class Subject:
    """The optimizer that a target provides, in one dtype. way: how it is stepped, or why it cannot be."""

    target: Target
    dtype: torch.dtype
    _accepted: dict[str, bool] = field(default_factory=dict)

    @property
    def make(self) -> Any:
        """``optimizer(params, **options)``."""
        return self.target.operation("optimizer")

    @cached_property
    def way(self) -> Stepping | str:
        """Stepping of the optimizer, or the reason why it cannot be stepped."""
        return find_stepping(self.make, self.dtype)

    @property
    def stepping(self) -> Stepping:
        """Stepping of the optimizer; a default one if it cannot be stepped."""
        return self.way if isinstance(self.way, Stepping) else Stepping(((2, 3), (4,), (5, 2)))

    def accepts(self, options: Mapping[str, Any]) -> bool:
        """Return whether the optimizer can be built with such options, and stepped."""
        key = repr(sorted(options.items()))
        if key not in self._accepted:
            self._accepted[key] = not steps(self.make, self.stepping, self.dtype, options)
        return self._accepted[key]

    @cached_property
    def built(self) -> Any:
        """New instance of the optimizer."""
        return self.make([torch.ones(s, dtype=self.dtype).requires_grad_() for s in self.stepping.shapes])

    @cached_property
    def takes(self) -> frozenset[str]:
        """The names of its options."""
        return frozenset(inspect.signature(self.make).parameters) - {"params"}

    @cached_property
    def rate(self) -> float | None:
        """Its learning rate, if its groups have one that is a number."""
        found = self.built.param_groups[0].get("lr")
        return float(found) if isinstance(found, float | int) and not isinstance(found, bool) and found > 0 else None

    @cached_property
    def steers(self) -> bool:
        """True if the groups' rate scales every step, not only initial sizes kept in the state, as with Rprop."""
        if self.rate is None:
            return False
        p = torch.ones(self.stepping.shapes[0], dtype=self.dtype).requires_grad_()
        try:
            p.grad = torch.full_like(p, 0.37)  # which no rate is
            trainer = self.make([p])
            trainer.step()
        except Exception:
            return True
        kept = [x for x in trainer.state[p].values() if isinstance(x, torch.Tensor) and x.shape == p.shape]
        return not any(x.numel() > 1 and bool((x == self.rate).all()) for x in kept)

    @cached_property
    def alternatives(self) -> tuple[dict[str, Any], ...]:
        """Other values of its groups' options, one at a time, that it can be built and stepped with."""
        found = []
        for name, value in self.built.defaults.items():
            if name in self.takes and name not in _NO_OPTION:
                found += [one for other in _others(value) if self.accepts(one := {name: other})]
        return tuple(found)

    @cached_property
    def variants(self) -> tuple[dict[str, Any], ...]:
        """Other ways of computing the same step that it offers here."""
        return tuple({name: True} for name in KERNELS if name in self.takes and self.accepts({name: True}))

    @property
    def one_by_one(self) -> dict[str, Any]:
        """The option by which no kernel takes several parameters at once."""
        return {"foreach": False} if "foreach" in self.takes and self.accepts({"foreach": False}) else {}

    @cached_property
    def groupable(self) -> bool:
        """True if the optimizer takes several groups."""
        try:
            self.make(
                [{"params": [torch.ones(s, dtype=self.dtype).requires_grad_()]} for s in self.stepping.shapes[:2]]
            )
        except Exception:
            return False
        return True

    @cached_property
    def separate(self) -> bool:
        """True if a parameter takes equal steps among others and alone, bit for bit, where all have gradients."""
        params = self._params()
        together = self.plain_run(params)
        alone = [self.plain_run([p], first=i) for i, p in enumerate(params)]
        return bool(together) and all(one and torch.equal(one[0], x) for one, x in zip(alone, together, strict=True))

    @cached_property
    def draws(self) -> bool:
        """True if steps draw random numbers, which go to parameters in their order."""
        with torch.random.fork_rng():
            torch.manual_seed(1)
            before = torch.random.get_rng_state()
            steps(self.make, self.stepping, self.dtype, seeded=False)
            return not torch.equal(before, torch.random.get_rng_state())

    @cached_property
    def eps(self) -> dict[str, Any]:
        """The option by which nothing is added to a denominator, where it has one."""
        names = [name for name in self.built.defaults if name in ("eps", "epsilon") and name in self.takes]
        return next(({names[0]: x} for x in (0.0, 1e-30) if names and self.accepts({names[0]: x})), {})

    @cached_property
    def family(self) -> str:
        """Response of plain runs to gradients that are 8 times as large: "invariant", "linear", or "" for neither."""
        starts = {"linear": [torch.zeros_like(p) for p in self._params()], "invariant": self._params()}
        for name, params in starts.items():
            one, other = (self.plain_run(params, factor=factor, options=self.eps) for factor in (1.0, 8.0))
            wanted = 8.0 if name == "linear" else 1.0
            if one and other and all(torch.equal(a * wanted, b) for a, b in zip(one, other, strict=True)):
                return name
        return ""

    def _params(self) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(7)
        return [torch.randn(s, generator=generator, dtype=torch.float64).to(self.dtype) for s in self.stepping.shapes]

    def plain_run(
        self,
        params: list[torch.Tensor],
        *,
        first: int = 0,
        factor: float = 1.0,
        steps: int = _PLAIN_STEPS,
        **given: Any,
    ) -> list[torch.Tensor]:
        """Return a run in which every parameter has gradients nowhere near zero; nothing where it raises.

        first: the number of the first parameter, which decides its gradients.
        """
        grads = []
        for i, p in enumerate(params):
            generator = torch.Generator().manual_seed(100 + first + i)
            signs = torch.randint(0, 2, (steps, *p.shape), generator=generator) * 2 - 1
            sizes = torch.rand((steps, *p.shape), generator=generator, dtype=torch.float64) + 0.25
            grads.append((factor * signs * sizes).to(self.dtype))
        asked = {"closure": self.stepping.closure, "sparse": self.stepping.sparse, **given}
        try:
            return drive_any_optimizer(self.target.implementation, params=params, grads=grads, **asked)[0]  # type: ignore[no-untyped-call, no-any-return]
        except Exception:
            return []


def _others(value: Any) -> list[Any]:
    """Return alternative values of an option with this value."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [0.125, 1] if value == 0 else [value / 2] if isinstance(value, float) else [value + 1]
    if isinstance(value, tuple | list) and value and all(isinstance(x, float) for x in value):
        return [(value[0] / 2, *value[1:])]
    return []


_SUBJECTS: dict[tuple[int, torch.dtype], Subject] = {}


def subject(target: Target, dtype: torch.dtype) -> Subject:
    """Return the optimizer of a target, looked at once in a process."""
    key = id(target.implementation), dtype
    if key not in _SUBJECTS:
        _SUBJECTS[key] = Subject(target, dtype)
    return _SUBJECTS[key]
