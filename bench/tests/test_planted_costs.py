"""Complexity bugs, planted one at a time: each is refuted by counts in the right words, and its right twin is not."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from veriformer import impl
from veriformer.bench import torch_functional as right
from veriformer.bench.assess import assess
from veriformer.bench.counts import FLOPS, Series, causal
from veriformer.bench.predicted_costs import IN_BLOCKS
from veriformer.bench.targets import Target
from veriformer.bench.terminal import verdict
from veriformer.bench.verdicts import Verdict


def counted(operation, function, variant=None, **beside):
    provided = SimpleNamespace(**{operation: function}, **beside)
    return next(iter(assess(Target("planted", None, None, False, provided, variant), (operation,))))


class Buffer:
    """A cache as large as all that comes, whose update returns views."""

    def __init__(self, batch, heads, capacity, width):
        self.k, self.v = (torch.empty(batch, heads, capacity, width) for _ in range(2))
        self.length = 0

    def update(self, k, v):
        end = self.length + k.shape[2]
        self.k[:, :, self.length : end], self.v[:, :, self.length : end] = k, v
        self.length = end
        return self.k[:, :, :end], self.v[:, :, :end]


class Concatenated(Buffer):
    def update(self, k, v):
        self.k = torch.cat((self.k[:, :, : self.length], k), 2)
        self.v = torch.cat((self.v[:, :, : self.length], v), 2)
        self.length += k.shape[2]
        return self.k, self.v


class Rewritten(Buffer):
    def update(self, k, v):
        self.k, self.v = self.k.clone(), self.v.clone()
        return super().update(k, v)


class Twice(Buffer):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.spare = self.k.clone(), self.v.clone()


class Windowed(Buffer):
    """Ring buffer of two windows; rows outside the window are overwritten."""

    def __init__(self, batch, heads, capacity, width, window):
        super().__init__(batch, heads, 2 * window, width)
        self.window = window

    def update(self, k, v):
        if self.length + k.shape[2] > self.k.shape[2]:
            for name, new in (("k", k), ("v", v)):
                whole = torch.cat([getattr(self, name)[:, :, : self.length], new], 2)[:, :, 1 - self.window :]
                getattr(self, name)[:, :, : self.window - 1] = whole
            self.length = self.window - 1
            return self.k, self.v
        k, v = super().update(k, v)
        return k[:, :, -self.window :], v[:, :, -self.window :]


class Unbounded(Buffer):
    """Keeps what no window shows."""

    def __init__(self, batch, heads, capacity, width, window):
        super().__init__(batch, heads, capacity, width)
        self.window = window

    def update(self, k, v):
        return tuple(x[:, :, -self.window :] for x in super().update(k, v))


class Rolled(Buffer):
    """Moves its window by one at every step."""

    def __init__(self, batch, heads, capacity, width, window):
        super().__init__(batch, heads, window, width)

    def update(self, k, v):
        capacity = self.k.shape[2]
        self.k, self.v = (torch.cat((old, new), 2)[:, :, -capacity:].clone() for old, new in ((self.k, k), (self.v, v)))
        return self.k, self.v


class Bytes(Buffer):
    """Int8 cache: one byte per entry and one scale per row."""

    def __init__(self, batch, heads, capacity, width, quantization):
        self.parts = [torch.empty(batch, heads, capacity, width, dtype=torch.int8) for _ in range(2)]
        self.scales = [torch.empty(batch, heads, capacity, 1) for _ in range(2)]
        self.length = 0

    def update(self, k, v):
        end = self.length + k.shape[2]
        for new, codes, scales in zip((k, v), self.parts, self.scales, strict=True):
            scales[:, :, self.length : end] = new.abs().amax(-1, keepdim=True)
            codes[:, :, self.length : end] = (new / new.abs().amax(-1, keepdim=True) * 127).round().to(torch.int8)
        self.length = end
        return tuple(c[:, :, :end] * s[:, :, :end] / 127 for c, s in zip(self.parts, self.scales, strict=True))


class BytesBesideFloats(Bytes):
    """Keeps what it decodes."""

    def __init__(self, batch, heads, capacity, width, quantization):
        super().__init__(batch, heads, capacity, width, quantization)
        self.decoded = torch.empty(2, batch, heads, capacity, width)


class Averaging:
    def __init__(self, params, lr):
        self.params, self.moments, self.lr = params, [torch.zeros(2, *p.shape) for p in params], lr

    @torch.no_grad()
    def step(self):
        for p, m in zip(self.params, self.moments, strict=True):
            m[0].lerp_(p.grad, 0.1)
            m[1].mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
            p.addcdiv_(m[0], m[1].sqrt().add_(1e-8), value=-self.lr)


class WithCopy(Averaging):
    def __init__(self, params, lr):
        super().__init__(params, lr)
        self.copies = [p.detach().clone() for p in params]


class Preconditioned(Averaging):
    def step(self):
        super().step()
        for p in self.params:
            torch.outer(p.grad, p.grad).sum()


class Remembering(Averaging):
    """Keeps every gradient that it has seen."""

    def __init__(self, params, lr):
        super().__init__(params, lr)
        self.seen = []

    def step(self):
        self.seen.append([p.grad.clone() for p in self.params])
        super().step()


class Replaying(Remembering):
    """Averages them anew at every step."""

    @torch.no_grad()
    def step(self):
        super().step()
        for i, p in enumerate(self.params):
            p.sub_(sum(grads[i] for grads in self.seen), alpha=0)


class Asking(Averaging):
    """Looks at every step whether the gradient is finite."""

    def step(self):
        if all(p.grad.isfinite().all() for p in self.params):
            super().step()


class AskingItsMoments(Averaging):
    """Skips where the moments are still zero."""

    def step(self):
        super().step()
        for m in self.moments:
            m[1].max().item()


class Counting(Averaging):
    """Its number of steps is a tensor, as in PyTorch, which the host reads: it comes from no array."""

    def __init__(self, params, lr):
        super().__init__(params, lr)
        self.steps = torch.zeros(())

    def step(self):
        self.steps += 1
        self.lr = 1e-3 / (1 - 0.9 ** self.steps.item())
        super().step()


def quadratic_loss(logits, target, **options):
    return -logits.log_softmax(-1)[:, target].diagonal().mean()


def dense(q, k, v, is_causal=False):
    return (q @ k.mT * q.shape[-1] ** -0.5).softmax(-1) @ v


def repeating(q, k, v, is_causal=False):
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    return F.scaled_dot_product_attention(q, k, v)


def masked_by_product(q, k, v, is_causal=False):
    s = (q @ k.mT).softmax(-1)
    return s @ v + 0 * ((q @ k.mT) @ v)


def mlp_twice(x, w1, b1, w2, b2):
    return right.mlp(x, w1, b1, w2, b2) + 0 * (x @ w1).sum()


def norm_by_matrix(x, weight, bias):
    d = x.shape[-1]
    centred = x @ (torch.eye(d) - 1 / d)
    return centred * centred.square().mean(-1, keepdim=True).rsqrt() * weight + bias


def embedding_by_product(ids, weight):
    return F.one_hot(ids, weight.shape[0]).to(weight.dtype) @ weight


def head_by_elements(h, weight):
    return (h.unsqueeze(-2) * weight).sum(-1)


def rotation_by_matrix(x, positions):
    return x @ torch.eye(x.shape[-1])


def softmax_by_pairs(z, dim=-1):
    return 1 / (z[..., None, :] - z[..., None]).exp().sum(-1)


def linear_by_scores(q, k, v, is_causal=False):
    s = (q.exp() @ k.exp().mT).tril() if is_causal else q.exp() @ k.exp().mT
    return s / s.sum(-1, keepdim=True) @ v


def over_whole_capacity(q, k, v, cache):
    cache.update(k, v)
    heads = q.shape[1] // k.shape[1]
    keys, values = (x.unsqueeze(2) for x in (cache.k, cache.v))
    s = torch.einsum("bgrd,bgnd->bgrn", q.unflatten(1, (-1, heads)).squeeze(3), keys.squeeze(2))
    return (s.softmax(-1) @ values.squeeze(2)).flatten(1, 2)


def all_experts(x, router, w1, b1, w2, b2, top_k):
    gates = (x @ router).softmax(-1)
    outs = torch.stack([right.feed_forward(x, *ws) for ws in zip(w1, b1, w2, b2, strict=True)], -2)
    return (gates[..., None] * outs).sum(-2)


def by_scope(window=Windowed, int8=Bytes):
    """A `kv_cache` whose class depends on what is asked of it."""

    def kv_cache(*sizes, **scope):
        if len(scope) > 1:
            raise ValueError("either a window or int8")
        return (window if "window" in scope else int8 if scope else Buffer)(*sizes, **scope)

    kv_cache.__name__ = f"{window.__name__} and {int8.__name__}"
    return kv_cache


def squares_by_inner_product(prediction, target):
    apart = (prediction - target).flatten()
    return torch.dot(apart, apart) / (apart.numel() // prediction.shape[-1])


PLANTED = [
    ("cross_entropy", quadratic_loss, {}, "2 in N"),
    ("kv_cache", Concatenated, {}, "the cache copies itself"),
    ("kv_cache", Rewritten, {}, "grows with max_length, not with length"),
    ("kv_cache", Twice, {}, "32*G*m*d instead of 16*G*m*d"),
    ("attention", dense, {"variant": "in blocks"}, "the scores are materialised"),
    ("attention", repeating, {}, "keys and values are repeated for every query head"),
    ("attention", masked_by_product, {}, "instead of 8*"),
    ("adam", WithCopy, {}, "12*P instead of 8*P"),
    ("adam", Preconditioned, {}, "2 in P"),
    ("mlp", mlp_twice, {}, "4*N*d*f instead of 2*N*d*f"),
    ("layer_norm", norm_by_matrix, {}, "2 in d"),
    ("token_embedding", embedding_by_product, {}, "1 in V"),
    ("lm_head", head_by_elements, {}, "multiplied element by element"),
    ("rope", rotation_by_matrix, {}, "2 in d"),
    ("softmax", softmax_by_pairs, {}, "2 in d"),
    ("linear_attention", linear_by_scores, {}, "the scores are materialised"),
    ("cached_attention", over_whole_capacity, {"kv_cache": Buffer}, "grows with max_length, not with length"),
    ("mixture_of_experts", all_experts, {}, "1 in E"),
    ("adam", Remembering, {}, "it grows with the number of steps"),
    ("adam", Replaying, {}, "it grows with the number of steps"),
    ("adam", Asking, {}, "the host asks once for a value"),
    ("adam", AskingItsMoments, {}, "the host asks once for a value"),
    ("kv_cache", by_scope(window=Unbounded), {}, "it grows with max_length"),
    ("kv_cache", by_scope(window=Rolled), {}, "the window is copied at every step"),
    ("kv_cache", by_scope(int8=BytesBesideFloats), {}, "20*G*m*d instead of 4*G*m*d"),
]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("operation", "function", "beside", "said"), PLANTED, ids=[function.__name__ for _, function, *_ in PLANTED]
)
def test_a_complexity_bug_is_refuted_in_words(operation, function, beside, said):
    found = counted(operation, function, **beside)
    refuted = [one for one in found if one.verdict is Verdict.REFUTED]
    assert any(said in one.reason for one in refuted), [(one.quantity, one.verdict, one.reason) for one in found]


RIGHT = [
    ("cross_entropy", right.cross_entropy, None),
    ("kv_cache", Buffer, None),
    ("kv_cache", by_scope(), None),
    ("attention", right.attention, None),
    ("attention", right.attention, "in blocks"),
    ("adam", Averaging, None),
    ("adam", Counting, None),
    ("adam", right.adam, None),
    ("mlp", right.mlp, None),
    ("layer_norm", right.layer_norm, None),
    ("token_embedding", right.token_embedding, None),
    ("softmax", right.softmax, None),
    ("multi_head_attention", right.multi_head_attention, None),
    ("lm_head", right.lm_head, None),
    ("mse_loss", squares_by_inner_product, None),
]


@pytest.mark.whole
@pytest.mark.parametrize(("operation", "function", "variant"), RIGHT)
def test_what_costs_what_it_should_is_confirmed(operation, function, variant):
    found = counted(operation, function, variant)
    assert verdict(found) is Verdict.CONFIRMED, [(one.quantity, one.verdict, one.reason) for one in found]


@pytest.mark.whole
def test_causal_attention_that_skips_nothing_is_refuted_in_words(blockwise):
    def skips_nothing(q, k, v, *, is_causal):
        return blockwise(64)(q, k, v)

    found = Series(Target("planted", skips_nothing, IN_BLOCKS, True), causal(64), FLOPS, False).count()
    assert found.verdict is Verdict.REFUTED
    assert "pairs that the causal mask hides are computed too" in found.reason


@pytest.mark.whole
@pytest.mark.parametrize("scores", [False, True])
def test_a_block_that_attends_in_blocks_holds_its_hidden_layer_and_no_scores(scores):
    def block(x, params, *, num_heads):
        out = impl.transformer_block(x, params, num_heads=num_heads)
        return out + (x @ x.mT).softmax(-1) @ x if scores else out

    found = counted("transformer_block", block, "in blocks")
    extra = {one.passes: one for one in found if one.quantity == "peak extra bytes"}
    expected = Verdict.REFUTED if scores else Verdict.CONFIRMED
    assert {one.verdict for one in extra.values()} == {expected}, extra
    assert scores is ("the scores are materialised" in extra["forward"].reason)
