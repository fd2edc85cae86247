"""Noise floors of whole models: how often they accuse what rounding alone moves, and how small a fault they see."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from veriformer.verify.mutants.staged_reference.model import Decoder, Shape
from veriformer.verify.operations.models import decision, noise
from veriformer.verify.operations.models.subject import Subject
from veriformer.verify.scripts import model_drivers as calls
from veriformer.verify.targets.claims import Claims
from veriformer.verify.targets.target import Target

FACTOR = decision.FACTOR


def ratios(model: torch.nn.Module, runs: int, change: float = 0.0) -> list[float]:
    """Distance over noise of logits in one call and through the cache, of which the second are changed by a factor."""
    found = []
    for seed in range(runs):
        generator = torch.Generator().manual_seed(seed)
        ids = torch.randint(0, 29, (2, 6), generator=generator)
        moved = lambda i, seed=seed: noise.perturb(model, 100 * seed + i)  # noqa: E731
        ways = ((calls.whole, {"ids": ids}), (calls.in_parts, {"ids": ids, "splits": [2, 3]}))
        one, two = (noise.cells(way(model, **given)) for way, given in ways)
        squares = [noise.Spread(way, given, model, moved, seed).squares(noise.RUNS) for way, given in ways]
        scale = np.sqrt(squares[0] + squares[1])
        found += [np.linalg.norm(a - b * (1 + change)) / s for a, b, s in zip(one, two, scale, strict=True)]
    return found


@pytest.fixture(scope="module")
def model() -> torch.nn.Module:
    torch.manual_seed(3)
    return Decoder(Shape(position="rope")).eval().double()


@pytest.mark.whole
def test_rounding_is_not_accused_and_stays_far_below_the_factor(model: torch.nn.Module) -> None:
    found = ratios(model, 10)
    assert len(found) == 120
    assert max(found) < FACTOR / 4


def test_a_change_of_a_million_millionth_is_seen_in_every_cell(model: torch.nn.Module) -> None:
    assert min(ratios(model, 2, change=1e-11)) > FACTOR


def test_the_factor_is_exceeded_by_gaussian_noise_at_its_rate() -> None:
    """The rank-one case, from which the factor is derived: the rate is right, and more directions make it smaller."""
    rng = np.random.default_rng(0)
    trials, rate = 200_000, 1e-2
    c = noise.factor(noise.RUNS, 1, rate)

    def alarms(directions: int) -> int:
        d = np.square(rng.standard_normal((trials, directions))).sum(1)
        s = np.square(rng.standard_normal((trials, noise.RUNS, directions))).sum((1, 2)) / noise.RUNS
        return int((d > c * c * s).sum())

    one, many = alarms(1), alarms(8)
    assert abs(one - trials * rate) < 6 * (trials * rate) ** 0.5
    assert many < one / 10


def test_the_factor_grows_with_the_cells_that_share_the_rate() -> None:
    assert noise.factor(4, 1) < noise.factor(4, 50) < noise.factor(4, 1, noise.ERROR_RATE / 51)


def test_whole_numbers_and_masks_are_left_alone() -> None:
    with noise.Roundoff(0):
        x = torch.arange(6.0, dtype=torch.float64) * 2 - 3
        y = x / 7
    assert torch.equal(x, torch.arange(6.0, dtype=torch.float64) * 2 - 3)
    assert not torch.equal(y, x / 7)
    assert bool(((y - x / 7).abs() <= 2 * torch.finfo(torch.float64).eps * y.abs()).all())


def test_tied_parameters_stay_tied_in_a_moved_copy(model: torch.nn.Module) -> None:
    assert calls.shared(noise.perturb(model, 0)) == [["embedding.weight", "head.weight"]]


def test_what_a_model_draws_at_random_is_no_noise() -> None:
    torch.manual_seed(3)
    careless = Decoder(Shape(dropout=0.3)).double().train()
    ids = torch.arange(6)[None]
    squares = noise.Spread(calls.whole, {"ids": ids}, careless, lambda i: noise.perturb(careless, i), 0).squares(2)
    assert float(np.sqrt(squares.max())) < 1e-10


class ByFlexAttention(torch.nn.Module):
    """A layer of causal attention, as one writes it who calls FlexAttention by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(29, 16)

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(input_ids)[:, None]
        o = flex_attention(x, x, x, score_mod=lambda s, b, h, i, j: torch.where(i >= j, s, -torch.inf))
        assert isinstance(o, torch.Tensor)
        return (x + o)[:, 0] @ self.embedding.weight.mT


def test_operations_of_higher_order_are_seen_and_commit_an_error() -> None:
    """PyTorch refuses them to modes that do not say they know them, and compiles them in others."""
    target = Target("flex by hand", SimpleNamespace(causal_lm=ByFlexAttention().double()), Claims(), None, "")
    model = Subject(target, "causal_lm")
    assert not model.attention
    ids = torch.arange(14).view(2, 7)
    squares = noise.Spread(calls.whole, {"ids": ids}, model.model(), lambda i: model.model(), 0).squares(4)
    sizes = [np.linalg.norm(cell) for cell in noise.cells(calls.whole(model.model(), ids))]
    units = np.sqrt(squares) / sizes / torch.finfo(torch.float64).eps
    assert ((units > 0.1) & (units < 10)).all()


def test_runs_go_on_until_ten_spreads_are_seen() -> None:
    """However unlucky the first runs are: what is off by a little more is accused, and what rounding moves never is."""
    rng = np.random.default_rng(0)
    accused = {0.0: 0, 15.0: 0}
    for _ in range(300):
        draws = rng.standard_normal((64, 20))
        for off in accused:
            distance = np.abs(rng.standard_normal(20) + off)
            bound = decision.decided(distance, lambda runs, draws=draws: np.square(draws[:runs]).mean(0))
            accused[off] += bool((distance > bound).any())
    assert accused[0.0] == 0
    assert accused[15.0] == 300


@pytest.mark.whole
def test_the_mean_of_differences_is_seen_below_their_own_size_and_no_noise_is() -> None:
    rng = np.random.default_rng(0)
    accused = {0.0: 0, 2.5: 0}
    for _ in range(300):
        for off in accused:
            mean, explained = decision.vanishing(lambda _, off=off: [off + rng.standard_normal(1) for _ in range(20)])
            accused[off] += bool((mean > explained).any())
    assert accused[0.0] == 0
    assert accused[2.5] > 285


def test_casts_to_fewer_digits_are_roundings_and_others_are_none() -> None:
    x = torch.rand(1000, dtype=torch.float64) + 1.01
    with noise.Roundoff(0):
        narrow = x.to(torch.bfloat16)
        wide = narrow.to(torch.float64)
        kept = torch.zeros(1000, dtype=torch.bfloat16)
        kept[:] = x
    units = {
        name: (y.double() - x).abs().max() / torch.finfo(torch.bfloat16).eps
        for name, y in (("cast", narrow), ("kept", kept))
    }
    assert all(1 < unit < 4 for unit in units.values())
    assert torch.equal(wide, narrow.double())


def test_numbers_of_a_byte_are_moved_as_well() -> None:
    x = torch.rand(1000) + 1.01
    with noise.Roundoff(0):
        y = x.to(torch.float8_e4m3fn)
    moved = (y.float() - x.to(torch.float8_e4m3fn).float()).abs()
    assert moved.max() > 0
    assert moved.max() <= 3 * torch.finfo(torch.float8_e4m3fn).eps


def test_what_is_rounded_in_place_is_changed_in_place() -> None:
    x = torch.full((1000,), 2.5)
    with noise.Roundoff(0):
        x.round_()
    assert set(x.tolist()) == {2.0, 3.0}


def test_a_run_that_leaves_the_range_says_nothing() -> None:
    bound = decision.decided(np.ones(1), lambda runs: np.full(1, np.inf))
    assert np.isposinf(bound).all()
    mean, explained = decision.vanishing(lambda number: [np.full(3, np.nan)])
    assert not (mean > explained).any()


def test_a_rounding_to_whole_numbers_goes_up_as_often_as_the_fraction_says() -> None:
    x = torch.tensor([2.25, 3.0, -1.75]).repeat(4000, 1)
    with noise.Roundoff(0):
        y = x.round()
    assert set(y[:, 0].tolist()) == {2.0, 3.0}
    assert set(y[:, 1].tolist()) == {3.0}
    assert (y.mean(0) - x[0]).abs().max() < 0.05
