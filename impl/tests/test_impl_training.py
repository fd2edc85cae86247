"""Optimizers, schedules and accumulation: exact steps, groups, halves, resuming, schedulers, shards."""

import copy
import itertools

import pytest
import torch

from veriformer.impl import (
    accumulate_gradients,
    adam,
    adamw,
    clip_grad_norm,
    gradient_descent,
    noam,
    sgd_momentum,
    warmup,
    warmup_cosine,
)
from veriformer.impl.optimization.schedulers import Beta2Warmup, Noam, Warmup, WarmupCosine

MAKERS = (gradient_descent, sgd_momentum, adam, adamw)


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def step(optimizer, p, g):
    p.grad = torch.as_tensor(g, dtype=p.dtype)
    optimizer.step()
    return p.tolist()


def test_steps_of_descent_and_momentum_are_exact():
    p = leaf(1.0, 2.0)
    assert step(gradient_descent([p], 0.5), p, [1.0, -2.0]) == [0.5, 3.0]
    p = leaf(1.0)
    optimizer = sgd_momentum([p], 1.0, beta=0.5)
    assert [step(optimizer, p, [g])[0] for g in (1.0, 2.0, 0.0)] == [0.5, -0.75, -1.375]


def test_the_first_steps_of_adam_have_the_length_of_the_rate():
    p = leaf(0.0, 0.0, 0.0)
    assert step(adam([p], 0.125, eps=0.0, betas=(0.5, 0.75)), p, [1e-3, -1.0, 1e6]) == [-0.125, 0.125, -0.125]


def test_decay_is_decoupled_in_one_and_l2_in_the_other():
    p = leaf(4.0)
    assert step(adamw([p], 0.5, weight_decay=0.5), p, [0.0]) == [3.0]
    p = leaf(4.0)
    assert step(adam([p], 0.5, weight_decay=0.5, eps=0.0, betas=(0.5, 0.75)), p, [0.0]) == [3.5]


@pytest.mark.parametrize("make", MAKERS)
def test_a_parameter_without_gradient_stands_still(make):
    p, q = leaf(1.0), leaf(1.0)
    optimizer = make([p, q], 0.25)
    p.grad = torch.ones(1, dtype=torch.float64)
    optimizer.step()
    assert q.tolist() == [1.0]
    assert q not in optimizer.state
    q.grad = torch.ones(1, dtype=torch.float64)
    p.grad = None
    optimizer.step()
    assert torch.equal(p, q)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("make", MAKERS)
def test_a_saved_run_goes_on_bit_for_bit(make, dtype):
    torch.manual_seed(0)
    grads = torch.randn(9, 5).to(dtype)
    p = torch.randn(5).to(dtype).requires_grad_()
    optimizer = make([p], 0.01)
    for t, g in enumerate(grads):
        if t == 4:
            q = p.detach().clone().requires_grad_()
            other = make([q], 0.5)
            other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
        step(optimizer, p, g)
        if t >= 4:
            step(other, q, g)
    assert torch.equal(p, q)


def test_halves_keep_their_averages_in_float32_and_stay_finite():
    p = leaf(1.0, 1.0, 1.0, dtype=torch.float16)
    optimizer = adam([p], 0.125)
    assert step(optimizer, p, [0.0, 3e4, 1e-6])[:2] == [1.0, 0.875]
    assert 0.875 < p[2] < 0.878  # ε is a hundredth of that gradient
    assert optimizer.state[p]["v"].dtype == torch.float32
    optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert optimizer.state[p]["v"].dtype == torch.float32


def test_groups_have_options_of_their_own():
    p, q = leaf(1.0), leaf(1.0)
    optimizer = adamw([{"params": [p]}, {"params": q, "lr": 0.0, "weight_decay": 0}], 0.25, weight_decay=1.0)
    p.grad, q.grad = torch.zeros(2, 1, dtype=torch.float64)
    optimizer.step()
    assert (p.item(), q.item()) == (0.75, 1.0)
    with pytest.raises(ValueError, match="betas: expected"):
        optimizer.add_param_group({"params": [leaf(1.0)], "betas": (0.9, 1.0)})


def test_parameters_of_several_dtypes_and_an_iterator():
    params = [leaf(1.0), leaf(1.0, dtype=torch.bfloat16), leaf(1.0, dtype=torch.float32)]
    optimizer = gradient_descent(iter(params), 0.5)
    for p in params:
        p.grad = torch.ones_like(p)
    optimizer.step()
    assert [p.item() for p in params] == [0.5] * 3


def test_a_closure_is_called_with_gradients_on():
    p = leaf(3.0)
    optimizer = gradient_descent([p], 0.5)

    def closure():
        optimizer.zero_grad()
        loss = p.square().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 9.0
    assert p.item() == 0.0


def test_schedules_at_their_joints():
    assert [warmup(t, max_lr=8.0, warmup_steps=4) for t in (0, 1, 4, 9)] == [0.0, 2.0, 8.0, 8.0]
    assert warmup(0, max_lr=3.0, warmup_steps=0) == 3.0
    rates = [warmup_cosine(t, max_lr=2.0, warmup_steps=2, total_steps=6) for t in range(9)]
    assert rates[:3] == [0.0, 1.0, 2.0]
    assert rates[6:] == [0.0, 0.0, 0.0]
    assert all(a > b for a, b in itertools.pairwise(rates[2:7]))
    assert warmup_cosine(3, max_lr=2.0, warmup_steps=3, total_steps=3) == 0.0
    assert noam(16, d_model=4, warmup_steps=16) == 0.125
    assert noam(8, d_model=4, warmup_steps=16) == 0.0625


def test_schedulers_follow_the_functions():
    p = leaf(1.0)
    for make, rate in (
        (lambda o: Warmup(o, 3), lambda t: warmup(t, max_lr=0.5, warmup_steps=3)),
        (lambda o: WarmupCosine(o, 2, 5), lambda t: 0.5 * warmup_cosine(t, max_lr=1.0, warmup_steps=2, total_steps=5)),
        (lambda o: Noam(o, 4, 2), lambda t: 0.5 * noam(t + 1, d_model=4, warmup_steps=2)),
    ):
        optimizer = gradient_descent([p], 0.5)
        scheduler = make(optimizer)
        for t in range(7):
            assert optimizer.param_groups[0]["lr"] == rate(t)
            optimizer.step()
            scheduler.step()
        again = make(gradient_descent([p], 0.5))
        again.load_state_dict(scheduler.state_dict())
        assert again.last_epoch == 7


def test_averages_stay_unbiased_while_beta_2_warms_up():
    p = leaf(0.0)
    optimizer = adam([p], 0.25, eps=0.0, betas=(0.5, 0.75))
    beta_2 = Beta2Warmup(optimizer, 0.25, 2)
    seen = []
    for _ in range(4):
        seen.append(optimizer.param_groups[0]["betas"][1])
        step(optimizer, p, [3.0])
        beta_2.step()
    assert seen == [0.25, 0.5, 0.75, 0.75]
    assert p.item() == -1.0


@pytest.mark.parametrize("sizes", [(6,), (1, 5), (2, 0, 3, 1), (0, 6)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_any_split_has_one_gradient(sizes, dtype):
    x = torch.arange(6.0).to(dtype).split(sizes)
    w, unused = leaf(0.5, dtype=dtype), leaf(1.0, dtype=dtype)
    w.grad = torch.full_like(w, 7.0)
    found = accumulate_gradients(lambda b: ((w * b).sum(), torch.tensor(len(b))), [w, unused], (b for b in x))
    assert [g.tolist() for g in found] == [[2.5], [0.0]]
    assert w.grad.tolist() == [7.0]


def test_over_no_token_the_gradients_are_zero():
    w = leaf(1.0, 2.0)
    empty = torch.zeros(0, 2, dtype=torch.float64)
    for batches in ([], [empty], [empty, empty]):
        assert accumulate_gradients(lambda b: ((b * w).sum(), len(b)), [w], batches)[0].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: adam([], 0.1), "params"),
        (lambda: adam(leaf(1.0), 0.1), "params"),
        (lambda: adam([None], 0.1), "params"),
        (lambda: adam([leaf(1.0) * 2], 0.1), "params"),
        (lambda: adam([{"lr": 0.1}], 0.1), "params"),
        (lambda: adam([leaf(1.0)], -0.1), "lr"),
        (lambda: adam([leaf(1.0)], 0.1, betas=0.9), "betas"),
        (lambda: adamw([leaf(1.0)], 0.1, eps=-1e-8), "eps"),
        (lambda: adamw([leaf(1.0)], 0.1, weight_decay=True), "weight_decay"),
        (lambda: sgd_momentum([leaf(1.0)], 0.1, beta=1.0), "beta"),
        (lambda: warmup(-1, max_lr=0.1, warmup_steps=3), "step"),
        (lambda: warmup_cosine(1, max_lr=0.1, warmup_steps=3, total_steps=2), "total_steps"),
        (lambda: noam(0, d_model=4, warmup_steps=2), "step"),
        (lambda: noam(1, d_model=4, warmup_steps=0), "warmup_steps"),
        (lambda: accumulate_gradients(None, [leaf(1.0)], []), "loss_fn"),
        (lambda: accumulate_gradients(lambda b: b, [torch.ones(1)], []), "params"),
        (lambda: accumulate_gradients(lambda b: b, [leaf(1.0)], None), "micro_batches"),
        (lambda: accumulate_gradients(lambda b: (leaf(1.0, 2.0), 1), [leaf(1.0)], [0]), "loss_fn"),
        (lambda: accumulate_gradients(lambda b: (leaf(1.0).sum(), -1), [leaf(1.0)], [0]), "count"),
    ],
)
def test_refusals_name_the_argument(call, name):
    with pytest.raises((ValueError, TypeError), match=rf"{name}.*: expected"):
        call()


@pytest.fixture
def mesh(tmp_path):
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield dist.init_device_mesh("cpu", (1,))
    dist.destroy_process_group()


def test_sharded_parameters_are_trained_and_clipped_like_whole_ones(mesh):
    from torch.distributed.tensor import DTensor, Shard, distribute_tensor

    whole, g = torch.tensor([[3.0, 0.0], [0.0, 4.0]]), torch.tensor([[3.0, 0.0], [0.0, -4.0]])
    plain = whole.clone().requires_grad_()
    sharded = distribute_tensor(whole.clone(), mesh, [Shard(0)]).requires_grad_()
    plain.grad, sharded.grad = g.clone(), distribute_tensor(g.clone(), mesh, [Shard(0)])
    (clipped,), norm = clip_grad_norm([sharded.grad], 2.5)
    assert isinstance(clipped, DTensor)
    assert torch.equal(clipped.full_tensor(), g / 2)
    assert (norm.full_tensor() if isinstance(norm, DTensor) else norm).item() == 5.0
    for p in (plain, sharded):
        adamw([p], 0.125).step()
    assert torch.equal(sharded.full_tensor(), plain)
