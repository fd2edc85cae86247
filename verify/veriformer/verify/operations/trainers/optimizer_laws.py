"""Laws of any optimizer: its state, its groups, its closure, its ways of computing a step, and scales."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import torch

from veriformer.verify.contract import dtypes
from veriformer.verify.laws.family import check
from veriformer.verify.operations.trainers.optimizer_runs import OptimizerExample, optimizer_property
from veriformer.verify.operations.trainers.optimizer_subject import Subject, subject
from veriformer.verify.strategies import choice
from veriformer.verify.targets.target import Target

Applies = Callable[[Target, str, str], str | None]


def _ability(reason: str) -> Callable[[Callable[[Subject], bool]], Applies]:
    """Return a decorator for the reason why a law does not apply; failures to build are the contract's."""

    def bound(able: Callable[[Subject], bool]) -> Applies:
        @wraps(able)
        def applies(target: Target, operation: str, dtype: str) -> str | None:
            found = subject(target, dtypes.TORCH[dtype])
            if isinstance(found.way, str):
                plain = subject(target, torch.float32).way
                return (
                    None if isinstance(plain, str) and dtype == "fp32" else f"it takes no step in {dtype}: {found.way}"
                )
            try:
                return None if able(found) else reason
            except Exception:
                return None

        return applies

    return bound


@_ability("")
def always(one: Subject) -> bool:
    """Return True: the laws apply in every dtype in which the optimizer takes a step."""
    return True


@_ability("parameters do not take the steps among others that they take alone")
def is_separate(one: Subject) -> bool:
    """Return whether parameters are stepped independently of one another."""
    return one.separate


@_ability("its steps draw random numbers, which go to parameters in their order")
def is_certain(one: Subject) -> bool:
    """Return whether steps draw no random numbers."""
    return not one.draws


@_ability("it takes one group only, or parameters do not take the steps among others that they take alone")
def has_separate_groups(one: Subject) -> bool:
    """Return whether the target takes several groups and steps each parameter separately."""
    return one.groupable and one.separate


@_ability("it takes one group only, its parameters depend on one another, or no option of a group is known")
def has_group_options(one: Subject) -> bool:
    """Return whether the target has separate groups, and a group may have options of its own."""
    return one.groupable and one.separate and bool(one.alternatives or _rates(one))


@_ability("its step takes no closure")
def has_closure(one: Subject) -> bool:
    """Return whether a step may be given a closure."""
    parameters = inspect.signature(one.built.step).parameters.values()
    return any(p.name == "closure" or p.kind is p.VAR_POSITIONAL for p in parameters)


@_ability("it has one way of computing a step: none of foreach, fused and capturable is offered here")
def has_variants(one: Subject) -> bool:
    """Return whether there are several ways of computing a step."""
    return bool(one.variants)


@_ability("its groups have no rate that steers every step")
def has_rate(one: Subject) -> bool:
    """Return whether the rate of a group can be changed."""
    return one.steers


@_ability("it has no option maximize")
def has_maximize(one: Subject) -> bool:
    """Return whether the optimizer can maximize."""
    return "maximize" in one.takes and one.accepts({"maximize": True})


@_ability("plain runs with gradients 8 times as large are neither the same nor 8 times as large")
def has_family(one: Subject) -> bool:
    """Return whether steps are invariant to the gradients' scale, or proportional to it."""
    return bool(one.family)


def _contract(e: OptimizerExample) -> None:
    outcome = e.ask()
    for i, p in enumerate(e.run["params"]):
        x = outcome.item(0, i)
        form = x.value.dtype == p.dtype and x.value.shape[1:] == p.shape
        said = f"{x.expression}.dtype == {p.dtype} and tuple({x.expression}.shape[1:]) == {tuple(p.shape)}"
        e.trial.assert_true(form, f"parameter {i} has become another dtype or shape", said)
    e.is_not(outcome, "zeroed")


def _gradients_kept(e: OptimizerExample) -> None:
    e.is_not(e.ask(), "gradient")


def _skipped(e: OptimizerExample) -> None:
    """Check gradients missing at some steps; where parameters step together, a parameter without any must not move."""
    if e.subject.separate:
        missing = e.some()
    else:
        e.at_least(2)
        still = int(e.rng.integers(e.n))
        missing = [(t, still) for t in range(e.T)]
    outcome = e.ask(missing=tuple(missing))
    e.is_not(outcome, "moved")
    if e.subject.separate:
        e.is_not(outcome, "state")


def _resume(e: OptimizerExample) -> None:
    given: dict[str, Any] = {"missing": tuple(e.some(0.2))} if e.trial.draw(choice(False, True)) else {}
    if e.subject.groupable and e.n > 1 and e.trial.draw(choice(False, True)):
        given["groups"] = e.split()
    cut = int(e.rng.integers(1, e.T))
    if e.subject.steers and e.trial.draw(choice(False, True)):  # a schedule has changed it before it is saved
        given["rates"] = ((cut - 1, -0.5),)
    what = e.trial.draw(choice("resumed", "rewound"))
    whole, parted = e.ask(**given), e.ask(**given, **{what: (cut,)})
    said = "a new optimizer that loaded the state" if what == "resumed" else "one that stepped astray and was set back"
    for i in range(e.n):
        e.same(whole.item(0, i), parted.item(0, i), f"{said} takes other steps than one that was never interrupted")


def _own_steps(e: OptimizerExample) -> None:
    e.at_least(2)
    i = int(e.rng.integers(e.n))
    missing = [(t, j) for t, j in e.some(0.5) if not (j == i and t == e.T - 1)]
    taken = [t for t in range(e.T) if (t, i) not in missing]
    whole = e.ask(missing=tuple(missing)).item(0, i)
    alone = e.alone(i, taken).item(0, 0)
    picked = type(whole)(whole.value[taken], f"{whole.expression}[{taken!r}]", whole.sources)
    e.same(picked, alone, "steps in which a parameter, or another one, has no gradient change its other steps")


def _order(e: OptimizerExample) -> None:
    e.at_least(2)
    order = [int(i) for i in e.rng.permutation(e.n)]
    turned = {key: [e.run[key][i] for i in order] for key in ("params", "grads")}
    places = [order.index(i) for i in range(e.n)]
    e.agree(dict(e.run), {**e.run, **turned}, "parameters that are listed in another order", places)


def _groups(e: OptimizerExample) -> None:
    e.at_least(2)
    one, two = e.ask(), e.ask(groups=e.split())
    for i in range(e.n):
        e.same(one.item(0, i), two.item(0, i), "parameters take other steps in two groups of equal options than in one")


def _rates(one: Subject) -> list[dict[str, Any]]:
    return [{"lr": one.rate / 4}] if one.rate and "lr" in one.takes else []


def _own_options(e: OptimizerExample) -> dict[str, Any] | None:
    """Return options for a group: another rate, or another value of something else; none where there are none."""
    known = [dict(one) for one in e.subject.alternatives if not one.keys() & e.run.get("options", {}).keys()]
    known += _rates(e.subject) * (1 + len(known) // 2)
    return known[int(e.rng.integers(len(known)))] if known else None


def _group_options(e: OptimizerExample) -> None:
    """A group with its own options, given at the start or added later, steps as an optimizer built with them."""
    e.at_least(2)
    own = _own_options(e)
    e.trial.assume(own is not None)
    (first, _), (last, _) = e.split()
    whole = e.ask(groups=[(first, None), (last, own)])
    name = next(iter(own or {}))
    for i in last:
        alone = e.alone(i, options={**e.run.get("options", {}), **(own or {})})
        e.same(whole.item(0, i), alone.item(0, 0), f"a group's own {name} is not what its parameters are stepped by")
    i = first[0]
    e.same(whole.item(0, i), e.alone(i).item(0, 0), f"one group's {name} changes the steps of another group")


def _added(e: OptimizerExample) -> None:
    e.at_least(2)
    (first, _), (last, _) = e.split()
    own, start = _own_options(e), int(e.rng.integers(1, e.T))
    own = own if e.trial.draw(choice(False, True)) else None
    whole = e.ask(groups=[(first, None), (last, own)], added=start)
    for i in last:
        steps = list(range(start, e.T))
        options = {**e.run.get("options", {}), **(own or {})}
        alone = e.alone(i, steps, **({"options": options} if options else {})).item(0, 0)
        x = whole.item(0, i)
        late = type(x)(x.value[start:], f"{x.expression}[{start}:]", x.sources)
        e.same(late, alone, "a group that is added later is not stepped as by an optimizer of its own")
    i = first[0]
    e.same(whole.item(0, i), e.alone(i).item(0, 0), "a group that is added later changes the steps of the others")


def _closure(e: OptimizerExample) -> None:
    outcome = e.ask(closure=True)
    e.is_not(outcome, "closure")
    if not e.subject.stepping.closure and all(n == 1 for kind, n in outcome.value[1] if kind == "calls"):
        plain = e.ask()
        for i in range(e.n):
            e.same(outcome.item(0, i), plain.item(0, i), "a step that is given a closure is another one than without")


def _variants(e: OptimizerExample) -> None:
    known = e.subject.variants
    variant = known[int(e.rng.integers(len(known)))]
    options = e.run.get("options", {})
    given = {"missing": tuple(e.some(0.3))} if e.trial.draw(choice(False, True)) else {}
    other = {**options, **variant}
    e.trial.assume(e.subject.accepts(other))
    plain = {**options, **({} if "foreach" in variant and not e.subject.one_by_one else e.subject.one_by_one)}
    what = f"steps by {next(iter(variant))}"
    e.agree({**e.run, **given, "options": plain}, {**e.run, **given, "options": other}, what)


def _no_rate(e: OptimizerExample) -> None:
    """Check rate 0 from the first step on: later, averages of steps at other rates may still move a parameter."""
    outcome = e.ask(rates=((0, 0.0),))
    for i, p in enumerate(e.run["params"]):
        x = outcome.item(0, i)
        said = f"bool(({x.expression} == {x.expression}.new_tensor({p.tolist()!r})).all())"
        still = bool((x.value == p).all())
        e.trial.assert_true(still, "parameters move though the rate of every group is 0", said)


def _rate(e: OptimizerExample) -> None:
    """Check that a changed rate changes a step, at the latest the second one, for an average of steps is one behind."""
    start = int(e.rng.integers(e.T - 1))
    plain, faster = e.ask(), e.ask(rates=((start, -4.0),))
    after = [plain.item(0, i).value[start:] for i in range(e.n)]
    e.trial.assume(any(bool((x != x[:1]).any()) for x in after))
    same = all(torch.equal(plain.item(0, i).value, faster.item(0, i).value) for i in range(e.n))
    said = f"not all(torch.equal(a, b) for a, b in zip({plain.name}[0], {faster.name}[0], strict=True))"
    e.trial.assert_true(not same, "a rate that is changed between steps changes none of them", said)


def _maximize(e: OptimizerExample) -> None:
    options = e.run.get("options", {})
    e.trial.assume(e.subject.accepts({**options, "maximize": True}))
    up = e.ask(options={**options, "maximize": True})
    down = e.ask(grads=[-g for g in e.run["grads"]])
    for i in range(e.n):
        e.same(up.item(0, i), down.item(0, i), "maximize takes other steps than minimizing by the negative gradients")


def _scale(e: OptimizerExample) -> None:
    family, c = e.subject.family, 2.0 ** int(e.rng.choice([-6, -1, 3, 9]))
    params = [torch.zeros_like(p) for p in e.run["params"]] if family == "linear" else e.run["params"]
    signs = [torch.where(torch.as_tensor(e.rng.random(tuple(g.shape)) < 0.5), -1.0, 1.0) for g in e.run["grads"]]
    sizes = [torch.as_tensor(e.rng.uniform(0.25, 4.0, tuple(g.shape))) for g in e.run["grads"]]
    grads = [(s * x).to(g.dtype) for s, x, g in zip(signs, sizes, e.run["grads"], strict=True)]
    given: dict[str, Any] = {"missing": tuple(e.some(0.2))} if e.trial.draw(choice(False, True)) else {}
    if e.subject.groupable and e.n > 1 and e.trial.draw(choice(False, True)):
        given["groups"] = e.split()
    given |= {"params": params, "options": {**e.run.get("options", {}), **e.subject.eps}}
    one, other = e.ask(**given, grads=grads), e.ask(**given, grads=[g * c for g in grads])
    factor = c if family == "linear" else 1.0
    for i in range(e.n):
        a, b = one.item(0, i), other.item(0, i)
        scaled = type(a)(a.value * factor, f"({a.expression} * {factor!r})", a.sources)
        said = (
            f"gradients {c:g} times as large do not give {'as much larger' if family == 'linear' else 'the same'} steps"
        )
        e.same(scaled, b, said)


_BOTH = ("fp64", "fp32")
_ROWS: tuple[tuple[str, Callable[[OptimizerExample], None], Applies, dict[str, Any]], ...] = (
    ("contract", _contract, always, {}),
    ("gradients_kept", _gradients_kept, always, {}),
    ("skipped", _skipped, always, {}),
    ("resume", _resume, always, {"dtypes": (*_BOTH, "bf16")}),
    ("own_steps", _own_steps, is_separate, {}),
    ("order", _order, is_certain, {}),
    ("groups", _groups, has_separate_groups, {}),
    ("group_options", _group_options, has_group_options, {}),
    ("added", _added, has_separate_groups, {}),
    ("closure", _closure, has_closure, {}),
    ("variants", _variants, has_variants, {}),
    ("no_rate", _no_rate, has_rate, {}),
    ("rate", _rate, has_rate, {}),
    ("maximize", _maximize, has_maximize, {}),
    ("scale", _scale, has_family, {}),
)
_STEPS = {"rate": (3, 8), "scale": (2, 12), "own_steps": (3, 8)}
_PLAIN = ("scale",)
"""Laws that options may break: an epsilon, or a decay of its own."""

CHECKS = tuple(
    check(
        f"optimizer.{name}",
        optimizer_property(body, steps=_STEPS.get(name, (2, 8)), options=name not in _PLAIN),
        applies=applies,
        **{"dtypes": _BOTH, **options},
    )
    for name, body, applies, options in _ROWS
)
