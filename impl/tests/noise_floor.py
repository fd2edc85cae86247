"""Bound on the difference of two computations of one whole model: measured rounding, and no more.

No bound can be derived for a black box. Its own sensitivity can be measured: the parameters are moved by one unit in
the last place, each up or down at random, again and again (Monte-Carlo arithmetic, after Parker). The spread of the
results is the noise floor. Two right ways of computing differ by two such draws, whose largest of N elements stays
below z(N) spreads but for one time in a billion.
"""

from statistics import NormalDist

import torch

DRAWS = 8
ERROR_RATE = 1e-9


def spread(model, run):
    """Return the standard deviation of each element of `run()` under changes of parameters in the last place, pooled.

    Elements of one row of logits are pooled by their root mean square, since eight draws of one element say little.
    """
    exact, generator = run(), torch.Generator().manual_seed(0)
    kept = [p.detach().clone() for p in model.parameters()]
    squares = torch.zeros_like(exact[..., :1])
    with torch.no_grad():
        for _ in range(DRAWS):
            for p, old in zip(model.parameters(), kept, strict=True):
                sign = torch.randint(0, 2, p.shape, generator=generator).to(p.dtype) * 2 - 1
                p.copy_(old * (1 + sign * torch.finfo(p.dtype).eps))
            squares += (run() - exact).square().mean(-1, keepdim=True)
        for p, old in zip(model.parameters(), kept, strict=True):
            p.copy_(old)
    return (squares / DRAWS).sqrt()


def judge_alike(got, want, sigma):
    """Refuse results that differ by more than rounding explains, and comparisons that show nothing."""
    assert got.shape == want.shape
    assert want.numel() > 1
    assert bool(want.isfinite().all())
    assert float(want.std()) > 0
    assert bool((sigma > 0).all())
    z = NormalDist().inv_cdf(1 - ERROR_RATE / 2 / want.numel())
    ratio = float(((got - want).abs() / (2**0.5 * z * sigma)).max())
    assert ratio <= 1, f"they differ by {ratio:.3g} times what rounding explains"
    return ratio
