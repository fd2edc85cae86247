"""The fused kernel of Adam and AdamW, and the steps that are taken where it cannot be."""

import pytest
import torch

from veriformer.impl import adam, adamw
from veriformer.impl.optimization.adam import Adam

EPS = {torch.float64: 2.0**-52, torch.float32: 2.0**-23, torch.bfloat16: 2.0**-7}


def run(make, dtype, steps=5, transposed=False, changing=None, **options):
    """Return the parameters after some steps, in float64. changing: the betas of each step."""
    generator = torch.Generator().manual_seed(0)
    drawn = [torch.randn(3, 5, generator=generator, dtype=torch.float64) for _ in range(2 + 2 * steps)]
    params = [x.to(dtype).requires_grad_() for x in drawn[:2]]
    optimizer = make(params, 0.01, **options)
    for step in range(steps):
        for p, g in zip(params, drawn[2 + 2 * step :], strict=False):
            p.grad = g.to(dtype).mT.contiguous().mT if transposed else g.to(dtype)
        if changing is not None:
            optimizer.param_groups[0]["betas"] = changing[step]
        optimizer.step()
    return torch.stack([p.detach().double() for p in params])


@pytest.fixture
def fused(monkeypatch):
    """Note whether each update was made by the fused kernel."""
    found, inner = [], Adam._update_fused

    def note(self, *given):
        found.append(inner(self, *given))
        return found[-1]

    monkeypatch.setattr(Adam, "_update_fused", note)
    return found


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("options", [{}, {"weight_decay": 0.3}, {"betas": (0.0, 0.5), "eps": 0.1}], ids=str)
@pytest.mark.parametrize("make", [adam, adamw])
def test_both_ways_take_the_steps(make, options, dtype, fused, monkeypatch):
    found = run(make, dtype, **options)
    assert fused == [True] * 5
    monkeypatch.setattr(Adam, "_update_fused", lambda *_: False)
    # Each of five steps of at most 0.02 is rounded some ten times, and each parameter of at most 4 once a step.
    bound = 5 * EPS[dtype] * (4 if dtype == torch.bfloat16 else 4 + 10)
    assert float((found - run(make, dtype, **options)).abs().max()) <= bound


def test_what_does_not_lie_in_one_piece_is_updated_by_itself(fused):
    found = run(adamw, torch.float64, transposed=True, weight_decay=0.1)
    assert fused == [False] * 5
    assert float((found - run(adamw, torch.float64, weight_decay=0.1)).abs().max()) <= 5 * 14 * EPS[torch.float64]


def test_betas_that_change_are_not_those_of_the_kernel(fused):
    betas = [(0.9, 0.99), (0.9, 0.99), (0.8, 0.99), (0.8, 0.99), (0.8, 0.99)]
    run(adamw, torch.float64, changing=betas)
    assert fused == [True, True, False, False, False]
