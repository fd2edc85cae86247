"""PyTorch under the contract's names: refusals, claims, and the calls that need a word more than their name."""

import pytest
import torch

from veriformer.spec.arithmetic import FORMATS, Float, RunningError
from veriformer.spec.attention.attention import attention
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.judging.judge import Reference, ratios
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.torch_functional import TARGET

XP = RunningError(FORMATS["fp64"], oracle=Float())


def heads(n_q, n_k, *, H=4, G=2, d=3):
    torch.manual_seed(0)
    return tuple(torch.randn(shape, dtype=torch.float64) for shape in ((2, H, n_q, d), (2, G, n_k, d), (2, G, n_k, 5)))


def agrees(q, k, v, mask=None, bias=None, **options):
    """PyTorch's result lies within the bound of the spec's formula."""
    given = {name: x for name, x in {"mask": mask, "bias": bias}.items() if x is not None}
    exact = attention(
        XP,
        *(XP.asarray(x.numpy()) for x in (q, k, v)),
        mask=None if mask is None else mask.numpy(),
        bias=None if bias is None else XP.asarray(bias.numpy()),
        **options,
    )
    got = TARGET.attention(q, k, v, **given, **options).numpy()
    return bool((ratios(got, Reference(*XP.judgeable(exact))) <= 1).all())


def test_it_is_found_by_name_and_gives_reasons_only_for_what_it_lacks():
    target = load("torch")
    lacking = {name for name in POSITIONAL if not target.operation(name)}
    assert set(target.claims.not_provided) <= lacking < set(POSITIONAL)
    assert target.version == torch.__version__


def test_what_pytorch_refuses_with_runtime_error_is_refused_with_the_name_of_the_argument():
    q, k, v = heads(3, 4)
    with pytest.raises(ValueError, match="k: expected"):
        TARGET.attention(q, k[..., :2], v)
    with pytest.raises(ValueError, match="target: expected"):
        TARGET.cross_entropy(torch.zeros(2, 3), torch.tensor([0, 3]))
    with pytest.raises(TypeError, match="z: expected"):
        TARGET.softmax(torch.zeros(3, dtype=torch.int64))


def test_claims_say_what_pytorch_does():
    conventions = load("torch").claims.conventions
    assert conventions["cross_entropy.no_target"] == "nan"
    assert TARGET.cross_entropy(torch.zeros(1, 3), torch.tensor([-100])).isnan()
    assert conventions["clip_grad_norm.denominator"] == "norm+1e-6"
    clipped, norm = TARGET.clip_grad_norm([torch.tensor([1e-6], dtype=torch.float64)], 1e-6)
    assert norm == 1e-6
    assert clipped[0].item() == with_epsilon(1e-6)


def with_epsilon(x):
    return x * (x / (x + 1e-6))


def test_causality_is_bottom_right_for_either_length():
    for n_q, n_k in ((2, 5), (5, 2), (3, 3)):
        q, k, v = heads(n_q, n_k)
        assert TARGET.causal_mask(n_q, n_k).sum() == sum(max(0, min(n_k, i + n_k - n_q + 1)) for i in range(n_q))
        assert agrees(q, k, v, is_causal=True)
        assert agrees(q, k, v, is_causal=True, window=2)
        assert agrees(q, k, v[..., :3], is_causal=True, scale=-0.4)


def test_options_that_pytorch_has_no_argument_for():
    q, k, v = heads(3, 4)
    bias, mask = torch.randn(4, 1, 4, dtype=torch.float64), torch.tensor([[True, True, False, True]])
    assert agrees(q, k, v, softcap=0.7)
    assert agrees(q, k, v, bias=bias, mask=mask)
    assert agrees(q, k, v, bias=bias, softcap=0.7, scale=-0.4, is_causal=True, window=2)


def test_dropout_follows_the_generator_and_leaves_the_global_one_alone():
    q, k, v = heads(6, 7)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first, again, other = (
        TARGET.attention(q, k, v, dropout_p=0.5, training=True, generator=torch.Generator().manual_seed(seed))
        for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), state)
    TARGET.attention(q, k, v, dropout_p=0.5, training=True)
    assert not torch.equal(torch.get_rng_state(), state)


def test_clipping_leaves_its_argument_alone():
    g = torch.tensor([3.0, 4.0])
    clipped, norm = TARGET.clip_grad_norm([g], 1.0)
    assert norm == 5.0
    assert g.tolist() == [3.0, 4.0]
    assert clipped[0] is not g
