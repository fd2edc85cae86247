"""Beam search against every text there is, and the texts that a beam must not lose."""

import itertools
import math

import pytest
import torch

from veriformer.impl import beam_search

EOS = 0
INF = math.inf


def model(V, seed):
    """Log-probabilities that depend on the whole text."""

    def step(ids):
        seen = [torch.Generator().manual_seed(seed + hash(tuple(row)) % 2**20) for row in ids.tolist()]
        return torch.stack([torch.rand(V, generator=g).log_softmax(-1) for g in seen])

    return step


def every(step, V, length):
    """All finished texts with the sums of their log-probabilities and their lengths."""
    for n in range(1, length + 1):
        for ids in itertools.product(range(V), repeat=n):
            if EOS not in ids[:-1] and (n == length or ids[-1] == EOS):
                rows = [step(torch.tensor([[1, *ids[:k]]]))[0].double() for k in range(n)]
                yield [1, *ids], sum(float(row[i]) for row, i in zip(rows, ids, strict=True)), n


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_beam_that_holds_everything_finds_the_best(seed, penalty):
    V, length = 3, 3
    step = model(V, seed)
    ids, score = beam_search(
        step, torch.tensor([1]), beam_width=V**length, max_length=1 + length, eos=EOS, length_penalty=penalty
    )
    best = max(every(step, V, length), key=lambda text: text[1] / text[2] ** penalty)
    assert ids.tolist() == best[0]
    assert abs(score - best[1] / best[2] ** penalty) <= 2**-50 * abs(score)


def table(rows, V):
    def step(ids):
        return torch.tensor([rows.get(tuple(row[1:]), [1 / V] * V) for row in ids.tolist()]).log()

    return step


def search(step, **options):
    ids, score = beam_search(step, torch.tensor([1]), **{"beam_width": 2, "max_length": 4, "eos": EOS, **options})
    return ids.tolist(), math.exp(score)


def test_a_finished_text_does_not_end_the_search_while_another_can_win():
    rows = {(): [0.5, 0.45, 0.05], (1,): [0.05, 0.9, 0.05], (1, 1): [0.95, 0.05, 0.0]}
    assert search(table(rows, 3), length_penalty=1.0)[0] == [1, 1, 1, 0]
    assert search(table(rows, 3), length_penalty=0.0)[0] == [1, 0]


def test_what_is_impossible_is_never_taken():
    rows = {(): [0.0, 1.0], (1,): [0.0, 1.0], (1, 1): [0.0, 1.0]}
    assert search(table(rows, 2), beam_width=9) == ([1, 1, 1, 1], 1.0)
    with pytest.raises(ValueError, match=r"^step: expected a continuation"):
        beam_search(lambda ids: torch.full((1, 2), -INF), torch.tensor([1]), beam_width=1, max_length=2, eos=EOS)


def test_no_room_gives_the_start():
    assert search(model(3, 0), max_length=1) == ([1], 1.0)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"beam_width": 0}, "beam_width"),
        ({"max_length": 1}, "max_length"),
        ({"start": torch.zeros(1, 1).long()}, "start"),
        ({"start": torch.zeros(2)}, "start"),
        ({"step": None}, "step"),
        ({"step": lambda ids: torch.zeros(3)}, "step"),
        ({"eos": 0.5}, "eos"),
        ({"length_penalty": math.nan}, "length_penalty"),
    ],
)
def test_bad_input_is_refused_by_name(change, name):
    call = {"step": model(3, 0), "start": torch.tensor([1, 1]), "beam_width": 2, "max_length": 4, "eos": EOS, **change}
    with pytest.raises((ValueError, TypeError), match=f"^{name}: expected"):
        beam_search(call.pop("step"), call.pop("start"), **call)
