"""The decoder in all its kinds, by every backend of attention: padding, packing, caches, gradients, causality."""

import copy

import pytest
import torch

from tests.model_configs import DECODERS
from tests.noise_floor import judge_alike, spread
from veriformer.impl.models import Decoder, causal_lm

B, N = 3, 13
kinds = pytest.mark.parametrize("kind", DECODERS)


def decoder(config):
    torch.manual_seed(5)
    model = Decoder(config).double().eval()
    for p in model.parameters():  # no zeros and ones that would hide a missing bias or weight
        p.data += 0.1 * torch.randn_like(p)
    return model


@pytest.fixture(scope="module", params=("sdpa", "reference", "tiled", "flex"))
def decoders(request):
    return {kind: decoder(config.replace(attention=request.param)) for kind, config in DECODERS.items()}


@pytest.fixture(scope="module")
def ids():
    return torch.randint(0, 37, (B, N), generator=torch.Generator().manual_seed(3))


@pytest.fixture(scope="module")
def floor(ids):
    """Logits and noise floor of every kind, by PyTorch's kernels, measured once."""
    models = {kind: decoder(config) for kind, config in DECODERS.items()}
    with torch.no_grad():
        return {kind: (m(ids).logits, spread(m, lambda m=m: m(ids).logits)) for kind, m in models.items()}


@kinds
@torch.no_grad()
def test_padding_on_either_side_changes_nothing(decoders, ids, floor, kind):
    mask = torch.ones(B, N + 4, dtype=torch.long)
    mask[0, :4], mask[1, -4:], mask[2, :1], mask[2, -3:] = 0, 0, 0, 0
    for fill in (0, 36):
        padded = torch.full(mask.shape, fill)
        padded[mask.bool()] = ids.flatten()
        for form in (mask, mask.bool()):
            logits = decoders[kind](padded, form).logits
            assert bool(logits.isfinite().all())
            judge_alike(logits[mask.bool()].view(B, N, -1), *floor[kind])


@pytest.mark.whole
@kinds
@pytest.mark.parametrize("cuts", [(1, 1, 11), (6, 7), (12, 1), (1,) * 13], ids=str)
@torch.no_grad()
def test_any_cut_into_cached_calls_gives_the_same(decoders, ids, floor, kind, cuts):
    model = decoders[kind]
    for kv_cache in (None, model.make_kv_cache(B, N), model.make_kv_cache(B)):
        parts = []
        for chunk in ids.split(cuts, dim=1):
            out = model(chunk, past_key_values=kv_cache, use_cache=True)
            parts.append(out.logits)
            kv_cache = out.past_key_values
        assert kv_cache.length == N
        judge_alike(torch.cat(parts, 1), *floor[kind])


@kinds
@torch.no_grad()
def test_left_padding_with_a_cache(decoders, ids, floor, kind):
    model, mask = decoders[kind], torch.ones(B, N + 3, dtype=torch.long)
    mask[1, :3] = 0
    rows = torch.cat((torch.zeros(B, 3, dtype=torch.long), ids), 1)
    rows[0], rows[2] = torch.cat((ids[0], ids[0, :3])), torch.cat((ids[2], ids[2, :3]))
    kv_cache, parts = model.make_kv_cache(B, N + 3), []
    for start, stop in ((0, 5), (5, 6), (6, 11), (11, 16)):
        parts.append(model(rows[:, start:stop], mask[:, :stop], kv_cache).logits)
    logits = torch.cat(parts, 1)
    want, sigma = floor[kind]
    judge_alike(torch.stack((logits[0, :N], logits[1, 3:], logits[2, :N])), want, sigma)


@kinds
@torch.no_grad()
def test_packed_documents_do_not_see_each_other(decoders, ids, floor, kind):
    model, cuts = decoders[kind], (5, 2, 6)
    documents = torch.repeat_interleave(torch.tensor([7, 3, 7]), torch.tensor(cuts)).expand(B, -1).clone()
    documents[:, -6:] = 9
    want = torch.cat([model(text).logits for text in ids.split(cuts, 1)], 1)
    judge_alike(model(ids, documents=documents).logits, want, floor[kind][1])


@kinds
@torch.no_grad()
def test_no_token_sees_a_later_one(decoders, ids, floor, kind):
    model, other = decoders[kind], ids.clone()
    other[:, 8:] = (other[:, 8:] + 1) % 37
    before, after = model(ids).logits, model(other).logits
    judge_alike(after[:, :8], before[:, :8], floor[kind][1][:, :8])
    assert bool((before[:, 8:] != after[:, 8:]).any(-1).all())


@kinds
def test_every_parameter_learns(decoders, ids, kind):
    model = decoders[kind]
    grads = torch.autograd.grad(model(ids).logits.square().sum(), list(model.parameters()))
    assert all(bool(g.any()) for g in grads)


@torch.no_grad()
def test_int8_memory_is_near_and_reorder_follows_beams(decoders, ids):
    model = decoders["llama"]
    exact, rough = model.make_kv_cache(B, N), model.make_kv_cache(B, N, quantization="int8")
    for kv_cache in (exact, rough):
        model(ids[:, :9], past_key_values=kv_cache)
        kv_cache.reorder(torch.tensor([2, 0, 0]))
    last = ids[[2, 0, 0], 9:10]
    want = model(ids[[2, 0, 0], :10]).logits[:, -1:]
    sigma = spread(model, lambda: model(ids[[2, 0, 0], :10]).logits[:, -1:])
    judge_alike(model(last, past_key_values=exact).logits, want, sigma)
    error = (model(last, past_key_values=rough).logits - want).abs().max()
    assert 0 < float(error) < float(want.std()) / 4


@torch.no_grad()
def test_the_model_of_the_contract(ids):
    model = causal_lm().eval()
    assert isinstance(model, torch.nn.Module)
    out = model(ids, use_cache=True)
    branch = copy.deepcopy(out.past_key_values)
    again = [model(ids[:, :1], past_key_values=m, use_cache=True).logits for m in (out.past_key_values, branch)]
    assert torch.equal(*again)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), causal_lm().parameters(), strict=True))
    assert model(ids).past_key_values is None
