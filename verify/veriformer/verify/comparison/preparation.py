"""In the reference's process: the given arguments, and every widened case that the reference itself takes.

Where nothing but the signature of a function is known, shapes and kinds are tried until it takes them.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from veriformer.verify.comparison.calling import call, same
from veriformer.verify.comparison.case import GIVEN, Case
from veriformer.verify.comparison.drawing import (
    CAPS,
    WORKING,
    Inputs,
    Sizes,
    as_inputs,
    draw_arguments,
    draw_weights,
    further_cases,
    halve,
    resize,
    symbols,
    tensors,
    with_other_number,
)
from veriformer.verify.comparison.subject import (
    REFERENCE,
    Objects,
    Prepared,
    Subject,
    load_subject,
    seed_everything,
    state,
)
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.locating import locate

_MOST = 2**26
"""Numbers in the given arguments above which fewer rows are taken."""


class Preparation:
    """The reference with its generators of arguments, and the calls that it accepts."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.subject = load_subject(job["spec"], REFERENCE)
        self.get_inputs, self.get_init = _generators(self.subject, job.get("inputs"))
        self.folder = Path(job["out"])
        self.device: str = job["device"]
        self.objects = Objects(self.subject, self.folder, self.device, fresh=True)
        self.said: list[str] = []

    def given(self, seed: int) -> Inputs:
        """Return the arguments that ``get_inputs`` makes under a seed."""
        seed_everything(seed)
        assert self.get_inputs is not None
        return as_inputs(self.get_inputs())

    def init(self) -> Inputs:
        """Return the arguments of the class."""
        seed_everything(0)
        return as_inputs(self.get_init()) if self.get_init is not None else ([], {})

    def realised(self, name: str, case: Case) -> Prepared | None:
        """Return the case with its arguments; None where they cannot be made."""
        inputs, init = draw_arguments(self.given(case.seed), case), self.init()
        if case.sizes:
            init = (
                [_resized(value, case) for value in init[0]],
                {key: _resized(value, case) for key, value in init[1].items()},
            )
        if case.scalar is not None:
            other = with_other_number(init, inputs, case.scalar)
            if other is None:
                return None
            init, inputs = other
        key = f"{case.sizes} {case.scalar} {case.dtype} {'drawn' if case.drawn else case.seed} {case.jitter}"
        return Prepared(name, case, inputs, init, _short(key))

    def weights(self, prepared: Prepared) -> None:
        """Write the weights of a case: as built, and as they are used."""
        file = self.folder / f"weights {prepared.key}.pt"
        if file.exists() or not (self.subject.built or isinstance(self.subject.thing, nn.Module)):
            return
        made = self.subject.make(prepared.init, prepared.case.seed if not prepared.case.drawn else 0)
        built = {name: x.detach().clone() for name, x in state(made).items()}
        used = built
        if prepared.case.drawn and isinstance(made, nn.Module):
            used = draw_weights(built, frozenset(dict(made.named_parameters())), 0)
        if prepared.case.jitter:
            generator = torch.Generator().manual_seed(5)
            used = {
                name: x * (1 + prepared.case.jitter * (torch.rand(x.shape, generator=generator) * 2 - 1)).to(x.dtype)
                if x.is_floating_point()
                else x
                for name, x in used.items()
            }
        torch.save({"built": built, "used": used}, file)

    def takes(self, prepared: Prepared) -> dict[str, Any] | None:
        """Return the record of the reference's own call; None where it raises or lacks the requested gradients."""
        try:
            self.weights(prepared)
            made = self.objects.of(prepared)
        except BaseException as error:
            self.said.append(f"{type(error).__name__}: {error}")
            return None
        called = call(made, copy.deepcopy(prepared.inputs), seed=prepared.case.seed, gradient=prepared.case.gradient)
        record = called.record
        if record["error"]:
            self.said.append(": ".join(record["error"]))
            return None
        if prepared.case.gradient and not record.get("gradients"):
            return None
        floats = [x for x in record["results"].values() if isinstance(x, torch.Tensor) and x.is_floating_point()]
        total = sum(x.numel() for x in floats)
        finite = sum(int(x.isfinite().sum()) for x in floats)
        record["finite"] = finite / total if total else 1.0
        return record


def prepare(job: dict[str, Any]) -> dict[str, Any]:
    """Write every case that the reference takes. Gives their names in order, and what is known of the reference."""
    prep = Preparation(job)
    if prep.get_inputs is None:
        prep.get_inputs = guess_inputs(prep.subject.thing if not prep.subject.built else None, job["seconds"] / 4)
    if job.get("cases"):
        made = [prep.realised(name, Case.from_dict(entry)) for name, entry in job["cases"].items()]
        return {"cases": [one.name for one in made if one and _kept(prep, one)]}
    if prep.get_inputs is None:
        return {"cases": [], "why": f"there are no inputs: {prep.subject.spec} has no get_inputs(), and none fit"}
    base = Case()
    total = sum(x.numel() for x in tensors(prep.given(0)))
    if total > _MOST:
        base = base.but(sizes=_fewer_rows(prep.given(0), total))
    first = prep.realised("given", base)
    assert first is not None
    record = prep.takes(first)
    if record is None:
        return {"cases": [], "why": f"the reference refuses its own inputs: {prep.said[-1] if prep.said else ''}"}
    if not record["finite"]:
        return {"cases": [], "why": "nothing that the reference gives is finite"}
    first.save(prep.folder)
    random = _random(prep, first, record)
    stateful = _stateful(prep, first, record)
    sizes = _working_sizes(prep, base)
    names = ["given"]
    usual = base.but(sizes=sizes or base.sizes, mode="eval" if random else GIVEN)
    module = prep.subject.built or isinstance(prep.subject.thing, nn.Module)
    drawing = module and not job.get("undrawn", False)
    given, init = prep.given(0), prep.init()
    for name, case in further_cases(usual, base, given, init, module=module, drawing=drawing, random=random):
        if time.monotonic() > job["until"]:
            prep.said.append("time was over before every case was prepared")
            break
        if _limit_values(prep, name, case):
            names.append(name)
    return {
        "cases": names,
        "random": random,
        "stateful": stateful,
        "module": module,
        "symbols": symbols(prep.given(0), prep.init()),
        "name": prep.subject.name,
        "finite": record["finite"],
    }


def _working_sizes(prep: Preparation, base: Case) -> Sizes:
    """Return smaller sizes at which the reference runs quickly; nothing where the given ones are small enough."""
    given, init = prep.given(0), prep.init()
    numbers = sum(x.numel() for x in tensors(given))
    largest = max((s for s in symbols(given, init)), default=1)
    if numbers <= WORKING and largest <= CAPS[0]:
        return ()
    for cap in CAPS:
        sizes = tuple((size, new) for size in symbols(given, init) if (new := halve(size, cap)) != size)
        made = prep.realised("working", base.but(sizes=sizes)) if sizes else None
        if made is None or sum(x.numel() for x in tensors(made.inputs)) > WORKING:
            continue
        if prep.takes(made) is not None:
            return sizes
    rows = max((x.shape[0] for x in tensors(given) if x.ndim > 1), default=1)
    few = ((rows, 2),)
    made = prep.realised("working", base.but(sizes=few))
    return few if rows > 2 and made is not None and prep.takes(made) is not None else base.sizes


def _limit_values(prep: Preparation, name: str, case: Case) -> bool:
    """Keep the case within what the reference takes: all values, else positive ones, else those in the given range."""
    changed = case.values not in (GIVEN, "exchanged")
    for limits in ("", "positive", "range") if changed else ("",):
        with contextlib.suppress(TargetError, RuntimeError, ValueError, IndexError, TypeError):
            made = prep.realised(name, case.but(limits=limits))
            if made is not None and _kept(prep, made):
                return True
    return False


def _kept(prep: Preparation, prepared: Prepared) -> bool:
    record = prep.takes(prepared)
    if record is None or record["finite"] < 0.5:
        return False
    prepared.save(prep.folder)
    return True


def _generators(subject: Subject, inputs: str | None) -> tuple[Callable[[], Any] | None, Callable[[], Any] | None]:
    if inputs is None:
        return subject.companion("get_inputs"), subject.companion("get_init_inputs")
    found, _ = locate(inputs)
    if inspect.isfunction(found):
        return found, subject.companion("get_init_inputs")
    make = getattr(found, "get_inputs", None)
    if not callable(make):
        raise TargetError(f"inputs {inputs!r}: expected a function get_inputs() in it")
    return make, getattr(found, "get_init_inputs", None) or subject.companion("get_init_inputs")


def _random(prep: Preparation, prepared: Prepared, record: dict[str, Any]) -> bool:
    made = prep.objects.of(prepared)
    other = call(made, copy.deepcopy(prepared.inputs), seed=prepared.case.seed + 1, gradient=False).record
    return other["error"] is None and not _alike(record, other)


def _stateful(prep: Preparation, prepared: Prepared, record: dict[str, Any]) -> bool:
    """Return whether a second call of the same object gives another result than the first, its tensors put back."""
    keeping = Objects(prep.subject, prep.folder, prep.device)
    for _ in range(2):
        made = keeping.of(prepared)
        again = call(made, copy.deepcopy(prepared.inputs), seed=prepared.case.seed, gradient=False).record
    return again["error"] is not None or not _alike(record, again)


def _alike(a: dict[str, Any], b: dict[str, Any]) -> bool:
    pairs = itertools.zip_longest(a["results"].items(), b["results"].items())
    for one, other in pairs:
        if one is None or other is None or one[0] != other[0]:
            return False
        x, y = one[1], other[1]
        if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
            if x.is_floating_point() and x.shape == y.shape:
                # threads may add in another order from run to run: that is no state
                off = (x.double() - y.double()).abs().nan_to_num(0.0)
                if float(off.max() if off.numel() else 0.0) > 1e3 * torch.finfo(x.dtype).eps * _largest(x):
                    return False
            elif not same(x, y):
                return False
        elif x != y:
            return False
    return True


def _largest(x: torch.Tensor) -> float:
    finite = x[x.isfinite()]
    return float(finite.abs().max()) if finite.numel() else 1.0


def _fewer_rows(inputs: Inputs, total: int) -> tuple[tuple[int, int], ...]:
    rows = max((x.shape[0] for x in tensors(inputs) if x.ndim > 1), default=1)
    return ((rows, max(2, int(rows * _MOST / total))),)


def _resized(value: Any, case: Case) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_resized(item, case) for item in value)
    return resize(value, case.sizes)


def _short(key: str) -> str:
    import hashlib

    return hashlib.sha1(key.encode(), usedforsecurity=False).hexdigest()[:10]


_SHAPES = ((2, 3, 8, 16), (2, 8, 16), (8, 16), (16,), (16, 16), ())
_WHOLE = frozenset(
    ["ids", "input_ids", "idx", "index", "indices", "tokens", "target", "targets", "label", "labels", "y_true"]
)
_TRUTH = frozenset(["mask", "attn_mask", "attention_mask", "key_padding_mask", "padding_mask"])


def guess_inputs(function: Callable[..., Any] | None, seconds: float) -> Callable[[], Any] | None:
    """Return a function that draws arguments that this one accepts; None where no guess was accepted."""
    until = time.monotonic() + seconds
    for make in _tried(function) if function is not None else ():
        if time.monotonic() > until:
            return None
        try:
            with torch.random.fork_rng(devices=[]):
                function(*make())  # type: ignore[misc]
        except Exception:  # refused: the next
            continue
        return make
    return None


def _tried(function: Callable[..., Any]) -> Iterator[Callable[[], Any]]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return
    wanted = [p for p in parameters if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    kinds = [_kind(p) for p in wanted]
    count = sum(kind == "tensor" for kind in kinds)
    mixed = itertools.product(_SHAPES, repeat=count) if 1 < count <= 3 else ()
    for shapes in itertools.chain((((shape,) * count) for shape in _SHAPES), mixed):
        yield _maker(kinds, tuple(shapes))


def _kind(parameter: inspect.Parameter) -> str:
    said = str(parameter.annotation)
    if parameter.annotation is int or said == "int":
        return "int"
    if parameter.annotation is float or said == "float":
        return "float"
    if parameter.annotation is bool or said == "bool":
        return "bool"
    return "whole" if parameter.name in _WHOLE else "truth" if parameter.name in _TRUTH else "tensor"


def _maker(kinds: list[str], shapes: tuple[tuple[int, ...], ...]) -> Callable[[], Any]:
    leading = shapes[0] if shapes else _SHAPES[1]

    def make() -> list[Any]:
        left = iter(shapes)
        made: list[Any] = []
        for kind in kinds:
            if kind == "tensor":
                made.append(torch.randn(next(left)))
            elif kind == "whole":
                made.append(torch.randint(0, max(1, leading[-1] if leading else 1), leading[:-1]))
            elif kind == "truth":
                made.append(torch.rand(leading) < 0.7)
            else:
                made.append({"int": 2, "float": 0.5, "bool": True}[kind])
        return made

    return make
