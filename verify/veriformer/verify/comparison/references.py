"""Job of the reference's process: its results, those in float64, and their sensitivity to rounding."""

# mypy: allow-untyped-calls

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from veriformer.verify.comparison.arithmetic import Arithmetic
from veriformer.verify.comparison.calling import Record, call
from veriformer.verify.comparison.chance import moments
from veriformer.verify.comparison.drawing import Inputs
from veriformer.verify.comparison.subject import REFERENCE, Objects, Prepared, load_subject, state

RUNS, FEW = 16, 3
"""Perturbed runs of a case, and how many it takes at least."""

CASE_S, GIVEN_S = 0.6, 6.0
"""The time that the runs of a case may take, and those of the given one, whose sizes are not ours."""


def amplitude(dtype: torch.dtype) -> float:
    """Return the perturbation's size, ulp: several, so that a step nearby is met, but small beside a step."""
    return 2.0 if dtype in (torch.bfloat16, torch.float16) else 4.0


def unit(dtype: torch.dtype) -> float:
    """Return the unit in the last place of 1; 0 for integers."""
    return torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else 0.0


def quantities(record: Record) -> dict[str, Any]:
    """Return every tensor that a call yields or changes, by name."""
    found = {f"result{place}": x for place, x in record["results"].items()}
    found |= {f"the gradient of {place}": x for place, x in record.get("gradients", {}).items()}
    found |= {f"{place} after the call": x for place, x in record.get("changed", {}).items()}
    return found | {f"{name} after the call": x for name, x in record.get("state", {}).items()}


def evaluate(job: dict[str, Any]) -> dict[str, Any]:
    """Write, for each case, the reference's own results, those in float64, and the spread of the perturbed ones."""
    subject = load_subject(job["spec"], REFERENCE)
    folder, out, device = Path(job["folder"]), Path(job["out"]), job["device"]
    objects = Objects(subject, folder, device, fresh=job["stateful"])
    done = []
    for name in job["cases"]:
        if time.monotonic() > job["until"]:
            break
        prepared = Prepared.load(folder, name, device)
        torch.save(_evaluated(objects, prepared, job), out / f"{name}.pt")
        done.append(name)
    for name in job.get("moments", []):
        torch.save(moments(objects, Prepared.load(folder, name, device)), out / f"{name}.moments.pt")
    return {"cases": done}


def _evaluated(objects: Objects, prepared: Prepared, job: dict[str, Any]) -> dict[str, Any]:
    case = prepared.case
    made = objects.of(prepared)
    exact = {} if job.get("first") else _in_double(objects, prepared, made)
    made = objects.of(prepared)
    began = time.monotonic()
    record = call(made, _copy(prepared.inputs), seed=case.seed, gradient=case.gradient).record
    took = time.monotonic() - began
    base = quantities(record)
    dtypes = [x.dtype for x in base.values() if isinstance(x, torch.Tensor) and x.is_floating_point()]
    units = amplitude(max(dtypes, key=lambda d: torch.finfo(d).eps, default=torch.float32))
    steps = case.gradient or any(isinstance(x, torch.Tensor) and not unit(x.dtype) for x in base.values())
    seen = _Spread(base, units)
    first = int(job.get("first", 0))
    limit = job.get("case_s", GIVEN_S if prepared.name == "given" else CASE_S)
    with torch.compiler.set_stance("force_eager"), sdpa_kernel(SDPBackend.MATH):
        for run in range(int(job.get("runs", RUNS))):
            if run >= FEW and time.monotonic() - began > limit:
                break
            moved = _run_perturbed(objects, prepared, first + run, units, record, steps=steps)
            seen.add(quantities(moved) if moved is not None else {})
    return {"record": record, "exact": exact, "runs": seen.runs, "took": took, **seen.found()}


class _Spread:
    """Distance of perturbed runs from the plain one: the root mean square per unit, and the maximum."""

    def __init__(self, base: dict[str, Any], units: float) -> None:
        self.base = {name: _wide(x) for name, x in base.items() if isinstance(x, torch.Tensor | int | float)}
        self.units = units
        self.runs = 0
        self.squares = {name: torch.zeros_like(_real(x)) for name, x in self.base.items()}
        self.most = {name: torch.zeros_like(_real(x)) for name, x in self.base.items()}

    def add(self, other: dict[str, Any]) -> None:
        self.runs += 1
        for name, x in self.base.items():
            found = other.get(name)
            if not isinstance(found, torch.Tensor | int | float) or _wide(found).shape != x.shape:
                self.most[name].fill_(float("inf"))
                continue
            off = (_real(_wide(found)) - _real(x)).abs()
            off[(_real(_wide(found)) == _real(x)) | ~_real(x).isfinite()] = 0.0
            off = off.nan_to_num(float("inf"), float("inf"))
            self.squares[name] += off.square()
            self.most[name] = torch.maximum(self.most[name], off)

    def found(self) -> dict[str, Any]:
        spread = {name: (x / max(1, self.runs)).sqrt() / self.units for name, x in self.squares.items()}
        return {"spread": spread, "most": self.most}


def _wide(x: Any) -> torch.Tensor:
    held: torch.Tensor = torch.as_tensor(x).detach().cpu()
    return held.to(torch.complex128 if held.is_complex() else torch.float64)


def _real(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(x) if x.is_complex() else x


def _copy(inputs: Inputs) -> Inputs:
    """Copy the arguments, with shared tensors still shared."""
    copies: dict[int, torch.Tensor] = {}

    def copy(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return x
        return copies.setdefault(
            id(x),
            torch.empty_strided(x.size(), x.stride(), dtype=x.dtype, device=x.device).copy_(x)
            if not any(s == 0 for s in x.stride())
            else x.clone(),
        )

    found: Inputs = pytree.tree_map(copy, inputs)
    return found


def _run_perturbed(
    objects: Objects, prepared: Prepared, run: int, units: float, base: Record, *, steps: bool
) -> Record | None:
    """Run once with random errors in the arguments, in the weights and in every operation; None where it fails.

    steps: whether zeros and whole numbers are moved as well, for what is decided by a comparison of them.
    """
    generator = torch.Generator().manual_seed(1000 + run)
    gradient = prepared.case.gradient
    moved: dict[int, torch.Tensor] = {}

    def move(x: Any) -> Any:
        if not isinstance(x, torch.Tensor) or not x.is_floating_point():
            return x
        if id(x) not in moved:
            moved[id(x)] = _perturb(x, generator, units, zeros=steps)
        return moved[id(x)]

    inputs: Inputs = pytree.tree_map(move, _copy(prepared.inputs))
    made = objects.of(prepared)
    if isinstance(made, nn.Module):
        with torch.no_grad():
            for x in made.parameters():
                if x.is_floating_point():
                    x.copy_(_perturb(x, generator, units, zeros=False))
    try:
        with Arithmetic(run, units):
            record = call(made, inputs, seed=prepared.case.seed, gradient=gradient, like=base).record
    except Exception:  # a kernel that knows no modes
        return None
    return None if record["error"] else record


def _perturb(x: torch.Tensor, generator: torch.Generator, units: float, *, zeros: bool) -> torch.Tensor:
    """Perturb a tensor by a few ulp; integers stay. zeros: zeros of gradients may move to either side."""
    values = x.detach().to("cpu", torch.float64)
    unit = torch.finfo(x.dtype).eps * units
    if not zeros and bool(((values == values.round()) & (values.abs() < 1 / unit)).all()):
        return x
    noise = (torch.rand(values.shape, generator=generator, dtype=torch.float64) * 2 - 1) * unit
    moved = values * (1 + noise)
    if zeros:
        size = values[values.isfinite()].abs().mean().clamp(min=torch.finfo(x.dtype).tiny / unit)
        moved = torch.where(values == 0, noise * size, moved)
    return torch.where(values.isfinite(), moved, values).to(x.device, x.dtype)


class _Promoted(TorchDispatchMode):
    """While it is entered, what would be made in a coarser format than float64 is made in float64."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if kwargs.get("dtype") in (torch.float32, torch.float16, torch.bfloat16):
            kwargs["dtype"] = torch.float64
        return func(*args, **kwargs)


@contextlib.contextmanager
def _double() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with torch.compiler.set_stance("force_eager"), _Promoted():
            yield
    finally:
        torch.set_default_dtype(before)


def _in_double(objects: Objects, prepared: Prepared, made: Any) -> dict[str, Any]:
    """Return the reference's result in float64 for the same arguments and weights; empty where it cannot be had."""

    def widened(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.is_complex():
            return x.to(torch.complex128)
        return x.double() if isinstance(x, torch.Tensor) and x.is_floating_point() else x

    try:
        other = objects.subject.make(prepared.init, 0)
        if isinstance(other, nn.Module):
            other = other.double().to(objects.device)
            held, mine = state(other), state(made)
            with torch.no_grad():
                for name, x in mine.items():
                    held[name].copy_(x)
            other.train(made.training)
            for module, twin in zip(other.modules(), made.modules(), strict=True):
                module.training = twin.training
        inputs = pytree.tree_map(widened, _copy(prepared.inputs))
        with _double():
            record = call(other, inputs, seed=prepared.case.seed, gradient=prepared.case.gradient).record
    except Exception:  # float64 is a help, no requirement
        return {}
    return {} if record["error"] else quantities(record)
