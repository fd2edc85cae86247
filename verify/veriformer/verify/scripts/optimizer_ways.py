"""Driver of any optimizer: trained with gaps, saved and loaded, in groups, with a closure, at other rates.

It uses nothing but torch, for this file is quoted in the scripts that reproduce a violation.
"""

# mypy: ignore-errors

import copy
import io

import torch


def drive_any_optimizer(target, *, params, grads, options=None, groups=None, added=None, missing=(), resumed=(), rewound=(), rates=(), closure=False, sparse=False):  # fmt: skip # noqa: E501
    """Train: every parameter after each step, [steps, *shape] each, and what was seen on the way, as pairs of a kind
    and words.

    grads: of every parameter all its gradients, [steps, *shape]. groups: pairs of the numbers of parameters and
    options of their own; one of all if left out. added: the step before which the last of the groups is added.
    missing: pairs (step, parameter) without a gradient. resumed: before which steps a new optimizer goes on from a
    saved state; rewound: before which the same one steps astray and is set back. rates: pairs (step, rate), set in
    every group before that step; a negative one is a factor. closure: whether a step is given one. sparse: whether
    gradients are.
    """
    options = dict(options or {})
    groups = groups or [(list(range(len(params))), None)]
    seen, values = [], [[] for _ in params]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        params = [p.detach().clone().requires_grad_() for p in params]
        first = groups if added is None else groups[:-1]
        trainer = make_optimizer(target, params, first, options)
        for t in range(len(grads[0])):
            if t == added:
                trainer.add_param_group(group_of(params, groups[-1]))
                first = groups
            if t in resumed:
                file = io.BytesIO()
                torch.save(trainer.state_dict(), file)
                params = [p.detach().clone().requires_grad_() for p in params]
                trainer = make_optimizer(target, params, first, options)
                trainer.load_state_dict(torch.load(io.BytesIO(file.getvalue()), weights_only=False))
            if t in rewound:
                saved, before = copy.deepcopy(trainer.state_dict()), [p.detach().clone() for p in params]
                take_step(trainer, params, [torch.ones_like(p) for p in params], closure, sparse, t, [])
                with torch.no_grad():
                    for p, value in zip(params, before, strict=True):
                        p.copy_(value)
                trainer.load_state_dict(saved)
            for step, rate in rates:
                for group in trainer.param_groups if step == t else ():
                    group["lr"] = rate if rate >= 0 else -rate * group["lr"]
            there = {i for numbers, _ in first for i in numbers}
            given = [g[t] if i in there and (t, i) not in missing else None for i, g in enumerate(grads)]
            take_step(trainer, params, given, closure, sparse, t, seen)
            for value, p in zip(values, params, strict=True):
                value.append(p.detach().clone())
    return [torch.stack(steps) for steps in values], seen


def group_of(params, group):
    """Return a parameter group as an optimizer takes it."""
    numbers, own = group
    return {"params": [params[i] for i in numbers], **(own or {})}


def make_optimizer(target, params, groups, options):
    """Build a new optimizer, in training mode if it has modes."""
    plain = len(groups) == 1 and groups[0][1] is None
    given = [params[i] for i in groups[0][0]] if plain else [group_of(params, group) for group in groups]
    trainer = target.optimizer(given, **options)
    if callable(getattr(trainer, "train", None)):
        trainer.train()
    return trainer


def take_step(trainer, params, given, closure, sparse, t, seen):
    """Take one step with these gradients, None for none, and record its side effects in ``seen``."""
    calls, losses = [], []

    def compute():
        calls.append(torch.is_grad_enabled())
        for p, g in zip(params, given, strict=True):
            p.grad = None if g is None else g.clone().to_sparse() if sparse and g.ndim else g.clone()
        loss = sum((p.detach() * g).sum() for p, g in zip(params, given, strict=True) if g is not None)
        losses.append(torch.as_tensor(loss).clone())
        return losses[-1]

    before = [p.detach().clone() for p in params]
    held = [state_of(trainer, p) for p in params]
    torch.manual_seed(t)
    if closure:
        for p in params:
            p.grad = None
        result = trainer.step(compute)
        same = [loss for loss in losses if isinstance(result, torch.Tensor | float) and float(loss) == float(result)]
        if not calls:
            seen.append(("closure", f"step {t} did not call its closure"))
        elif not all(calls):
            seen.append(("closure", f"step {t} called its closure with gradients disabled"))
        elif not same:
            got = result if result is None else type(result).__name__
            seen.append(("closure", f"step {t} gave {got} and not the loss of its closure"))
        seen.append(("calls", len(calls)))
    else:
        compute()
        trainer.step()
        for i, (p, g) in enumerate(zip(params, given, strict=True)):
            if g is not None and (p.grad is None or not alike([p.grad.to_dense()], [g])):
                seen.append(("gradient", f"the gradient of parameter {i} was changed in step {t}"))
    for i, p in enumerate(params):
        if given[i] is None and not alike([p.detach()], [before[i]]):
            seen.append(("moved", f"parameter {i} moved in step {t}, in which it had no gradient"))
        if given[i] is None and not alike(held[i], state_of(trainer, p)):
            seen.append(("state", f"the state of parameter {i} changed in step {t}, in which it had no gradient"))
    for p in params:
        p.grad = torch.ones_like(p)
    known = [p for group in trainer.param_groups for p in group["params"]]
    trainer.zero_grad()
    if any(p.grad is not None and p.grad.any() for p in known):
        seen.append(("zeroed", f"zero_grad() left a gradient after step {t}"))


def state_of(trainer, p):
    """Return copies of the whole state that an optimizer keeps of a parameter, in a list."""
    found = []

    def keep(x):
        if isinstance(x, torch.Tensor):
            found.append(x.detach().clone())
        elif isinstance(x, dict):
            for key in sorted(x, key=str):
                keep(x[key])
        elif isinstance(x, list | tuple):
            for item in x:
                keep(item)
        elif isinstance(x, int | float):
            found.append(torch.tensor(float(x), dtype=torch.float64))

    keep(trainer.state.get(p, {}))
    return found


def alike(one, other):
    """Return whether two lists of tensors have equal shapes and numbers."""
    if len(one) != len(other):
        return False
    pairs = zip(one, other, strict=True)
    return all(a.shape == b.shape and torch.equal(a.nan_to_num(7.5), b.nan_to_num(7.5)) for a, b in pairs)
