"""Driver of any learning-rate schedule. It uses nothing but torch, for it is quoted in scripts."""

# mypy: ignore-errors

import io
import math

import torch


def drive_any_scheduler(target, *, rates, steps, metrics=(), resumed=(), shaken=None):
    """Return the rates of every group at the start and after each step [steps + 1, groups], those of the closed form
    where there is one (else the stepped ones), and messages of faults seen on the way.

    rates: by group the first one. metrics: what each step is given, if it asks for that. resumed: after which steps a
    new schedule goes on from a saved state. shaken: the seed of errors of one unit in the last place in every rate.
    """
    generator = torch.Generator().manual_seed(shaken or 0)
    seen, found, closed = [], [], []
    trainer, schedule = make_schedule(target, rates, generator if shaken is not None else None)
    for t in range(steps + 1):
        if t:
            for group in trainer.param_groups:
                for p in group["params"]:
                    p.grad = torch.zeros_like(p)
            trainer.step()
            schedule.step(*metrics[t - 1 : t])
        here = [float(group["lr"]) for group in trainer.param_groups]
        found.append(here)
        closed.append(closed_form(schedule, here))
        if getattr(schedule, "last_epoch", t) != t:
            seen.append(f"after {t} steps last_epoch is {schedule.last_epoch}")
        last = schedule.get_last_lr() if hasattr(schedule, "get_last_lr") and (t or not metrics) else here
        if [float(x) for x in last] != here:
            seen.append(f"after {t} steps get_last_lr gives {list(map(float, last))}, and the groups have {here}")
        if shaken is not None:
            shake(trainer, generator)
        if t in resumed:
            file = io.BytesIO()
            torch.save([trainer.state_dict(), schedule.state_dict()], file)
            saved = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
            trainer, schedule = make_schedule(target, rates, None)
            trainer.load_state_dict(saved[0])
            schedule.load_state_dict(saved[1])
    return torch.tensor(found, dtype=torch.float64), torch.tensor(closed, dtype=torch.float64), seen


def make_schedule(target, rates, generator):
    """Build an optimizer with one parameter in each group, and a new schedule of its rates."""
    groups = [{"params": [torch.ones(2, requires_grad=True)], "lr": rate} for rate in rates]
    trainer = torch.optim.SGD(groups, lr=1.0, momentum=0.5)
    if generator is not None:
        shake(trainer, generator)
    return trainer, target.lr_scheduler(trainer)


def closed_form(schedule, otherwise):
    """Return the rates by the closed form of a schedule that has one, else ``otherwise``."""
    form = getattr(schedule, "_get_closed_form_lr", None)
    return [float(x) for x in form()] if callable(form) else otherwise


def shake(trainer, generator):
    """Move every rate to one of its neighbours, up or down at random."""
    for group in trainer.param_groups:
        up = bool(torch.rand((), generator=generator) < 0.5)
        group["lr"] = math.nextafter(group["lr"], math.inf if up else -math.inf)
