"""Generation with a model: caches, ragged batches, chunks, beams, and the exact law of speculative decoding."""

from itertools import product

import pytest
import torch

from tests.derived_bounds import gamma
from tests.model_configs import DECODERS, SIZES
from veriformer.impl import beam_search, greedy
from veriformer.impl.generation.beams import generate_beams
from veriformer.impl.generation.generate import generate, left_padded
from veriformer.impl.generation.sampling import GREEDY, Sampling
from veriformer.impl.generation.speculative import accept, residual, speculative
from veriformer.impl.models import Decoder, gpt, llama

TEXTS = [[3, 1, 4, 1, 5, 9], [2, 7], [1, 8, 2, 8]]
U = 2.0**-53


def model(kind, seed=0):
    torch.manual_seed(seed)
    return Decoder(DECODERS[kind]).double().eval()


def slow_greedy(model, text, new):
    """Choose each token from a forward pass over the whole text."""
    ids = torch.tensor([text])
    for _ in range(new):
        ids = torch.cat((ids, greedy(model(ids).logits[:, -1])[:, None]), 1)
    return ids[0].tolist()


@pytest.mark.parametrize("chunk", [None, 1, 4, 100])
@pytest.mark.parametrize("kind", ["gpt", "llama", "window, alibi, grouped, soft-cap", "t5 bias", "experts"])
@torch.no_grad()
def test_ragged_prompts_go_on_as_each_would_alone(kind, chunk):
    m = model(kind)
    ids, mask = left_padded(TEXTS, padding=7)
    rows = generate(m, ids, mask, max_new_tokens=8, chunk=chunk)
    for row, real, text in zip(rows, mask, TEXTS, strict=True):
        assert row[6 - int(real.sum()) :].tolist() == slow_greedy(m, text, 8)
    alone = generate(m, torch.tensor(TEXTS[:1]), max_new_tokens=8, chunk=chunk)
    assert torch.equal(alone[0], rows[0])


@torch.no_grad()
def test_a_row_ends_at_eos_and_generation_when_all_did():
    m = model("gpt")
    ids, mask = left_padded(TEXTS)
    free = generate(m, ids, mask, max_new_tokens=12)[:, 6:]
    eos = int(free[0, 3])
    rows = generate(m, ids, mask, max_new_tokens=12, eos=eos)[:, 6:]
    ends = []
    for row, want in zip(rows.tolist(), free.tolist(), strict=True):
        end = want.index(eos) + 1 if eos in want else len(row)
        ends.append(end)
        assert row[:end] == want[:end]
        assert set(row[end:]) <= {eos}
    assert rows.shape[1] == max(ends)
    assert generate(m, ids, mask, max_new_tokens=0).shape == ids.shape


def test_sampling_shapes_the_distribution():
    z = torch.tensor([[0.0, 3.0, 1.0, 2.0]], dtype=torch.float64)
    assert Sampling(temperature=0.0).probabilities(z).tolist() == [[0, 1, 0, 0]]
    assert Sampling(temperature=1e-300).probabilities(z).tolist() == [[0, 1, 0, 0]]
    assert (Sampling(top_k=2).probabilities(z) > 0).tolist() == [[False, True, False, True]]
    hot = Sampling(temperature=2.0).probabilities(z)
    want = (z / 2).softmax(-1)
    assert bool(((hot - want).abs() <= gamma(40, U) * want).all())
    # The nucleus is that of the tempered distribution: at T = 4 the best token has less than half of the mass.
    assert int((Sampling(top_p=0.5).probabilities(z) > 0).sum()) == 1
    assert int((Sampling(temperature=4.0, top_p=0.5).probabilities(z) > 0).sum()) == 2
    draws = {int(Sampling(top_k=2).draw(z, torch.Generator().manual_seed(i))) for i in range(60)}
    assert draws == {1, 3}


def test_a_token_is_drawn_as_torch_draws_it():
    z, sampling = torch.randn(200, 50, generator=torch.Generator().manual_seed(1)), Sampling(temperature=0.7, top_p=0.9)
    by_torch = torch.multinomial(sampling.probabilities(z), 1, generator=torch.Generator().manual_seed(2))[:, 0]
    assert torch.equal(sampling.draw(z, torch.Generator().manual_seed(2)), by_torch)


@pytest.mark.parametrize(
    "options", [{"temperature": -1.0}, {"top_k": 0}, {"top_p": 1.5}, {"temperature": float("inf")}]
)
def test_sampling_refuses(options):
    with pytest.raises(ValueError, match=f"^{next(iter(options))}: expected"):
        Sampling(**options)


def test_a_generator_makes_samples_repeatable():
    m, (ids, mask) = model("gpt"), left_padded(TEXTS)
    runs = [
        generate(m, ids, mask, max_new_tokens=9, sampling=Sampling(), generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    ]
    assert torch.equal(*runs[:2])
    assert not torch.equal(*runs[1:])
    cold = generate(m, ids, mask, max_new_tokens=9, sampling=Sampling(top_k=1))
    assert torch.equal(cold, generate(m, ids, mask, max_new_tokens=9, sampling=GREEDY))


@pytest.mark.parametrize("kind", ["gpt", "llama", "window"])
@pytest.mark.parametrize("penalty", [0.0, 1.0])
@torch.no_grad()
def test_beams_with_a_cache_find_what_beams_without_one_find(kind, penalty):
    m, options = model(kind), {"beam_width": 3, "max_length": 10, "eos": 5, "length_penalty": penalty}
    start = torch.tensor([3, 1, 4])
    ids, score = generate_beams(m, start, **options)
    want, want_score = beam_search(lambda ids: m(ids).logits[:, -1].log_softmax(-1), start, **options)
    assert torch.equal(ids, want)
    assert abs(score - want_score) <= gamma(10_000, U) * abs(want_score)


V = 3
TINY = {**SIZES, "vocab_size": V, "d_model": 8, "num_heads": 2, "init_std": 0.5}


class Outcomes(Exception):
    """Probabilities of the outcomes of the next choice."""


def all_runs(function):
    """Run a random function once for every sequence of outcomes its choices can have; give weights and results."""
    paths = [((), 1.0)]
    while paths:
        path, weight = paths.pop()
        left = list(path)

        def choose(p, left=left):
            if left:
                return left.pop(0)
            raise Outcomes(p.tolist())

        try:
            yield weight, function(choose)
        except Outcomes as stopped:
            paths += [((*path, i), weight * p) for i, p in enumerate(stopped.args[0]) if p > 0]


@pytest.mark.whole
@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(temperature=0.5), Sampling(top_k=2), Sampling(top_p=0.9)], ids=str
)
@pytest.mark.parametrize("guesses", [1, 2, 4])
@torch.no_grad()
def test_speculation_has_exactly_the_distribution_of_the_model(guesses, sampling):
    torch.manual_seed(0)
    large, small = Decoder(llama(**TINY)).double().eval(), Decoder(gpt(**{**TINY, "num_layers": 1})).double().eval()
    start, new = torch.tensor([[0, 2]]), 3
    options = {"max_new_tokens": new, "guesses": guesses, "sampling": sampling}
    got, runs = {}, 0
    for weight, ids in all_runs(lambda choose: speculative(large, small, start, choose=choose, **options)):
        text = tuple(ids[0, 2:].tolist())
        got[text], runs = got.get(text, 0.0) + weight, runs + 1
    assert runs > len(got) > 1
    for text in product(range(V), repeat=new):
        ids = torch.tensor([[0, 2, *text]])
        p = sampling.probabilities(large(ids).logits[0, 1:-1])
        want = float(p.gather(-1, torch.tensor(text)[:, None]).prod())
        # Logits of two ways of computing and the sums over all runs: a few hundred operations each.
        assert abs(got.get(text, 0.0) - want) <= gamma(20_000, U)


def test_acceptance_and_residual_give_back_the_distribution():
    p = torch.tensor([[0.5, 0.25, 0.25, 0.0], [0.0, 0.5, 0.0, 0.5]], dtype=torch.float64)
    q = torch.tensor([[0.25, 0.5, 0.0, 0.25]], dtype=torch.float64)
    total = torch.zeros(4, dtype=torch.float64)
    for x in range(4):
        if q[0, x] == 0:
            continue
        for weight, (kept, token) in all_runs(lambda choose, x=x: accept(p, q, torch.tensor([x]), choose)):
            first = x if kept else token
            total[first] += float(q[0, x]) * weight
    assert torch.equal(total, p[0])  # dyadic numbers: no rounding anywhere
    assert residual(p[0], q[0]).tolist() == [0.5, 0.0, 0.5, 0.0]


def test_speculation_refuses_what_it_cannot_do():
    large, small = model("gpt"), model("llama")
    with pytest.raises(ValueError, match="ids: expected"):
        speculative(large, small, torch.zeros(2, 3, dtype=torch.long), max_new_tokens=2)
    with pytest.raises(ValueError, match="vocabulary"):
        speculative(large, Decoder(gpt(**TINY)), torch.zeros(1, 3, dtype=torch.long), max_new_tokens=2)
    with pytest.raises(ValueError, match="window"):
        speculative(model("window"), small, torch.zeros(1, 3, dtype=torch.long), max_new_tokens=4)


def test_prompts_that_do_not_fit():
    m, (ids, mask) = model("gpt"), left_padded(TEXTS)
    with pytest.raises(ValueError, match="attention_mask: expected"):
        generate(m, ids, mask.flip(1), max_new_tokens=1)
    with pytest.raises(ValueError, match="max_new_tokens: expected"):
        generate(m, ids, mask, max_new_tokens=-1)
    with pytest.raises(ValueError, match="chunk: expected"):
        generate(m, ids, mask, max_new_tokens=1, chunk=0)
    with pytest.raises(ValueError, match="texts: expected"):
        left_padded([[1], []])
