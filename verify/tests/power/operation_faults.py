"""Faults of scores, layers and optimization that need two or three things at once, as those of ``attention_faults``."""

from __future__ import annotations

from typing import Any

import torch
from catalogue import HALVES, Call, change_gradient, change_steps, fault, list_parameters
from torch import Tensor

from veriformer.verify.targets.impl import reference as right

# Scores and losses


@fault("the entries of an incomplete last tile of 128 do not count in rows beyond the 128th")
def softmax__late_rows_lose_tail(op: Call, z: Tensor, dim: int = -1) -> Any:
    y = op(z, dim)
    n = z.shape[-1] - z.shape[-1] % 128 if z.ndim else 0
    rows = z.numel() // max(1, z.shape[-1]) if z.ndim else 0
    if dim not in (-1, z.ndim - 1) or not n or n == z.shape[-1] or rows <= 128:
        return y
    flat = z.reshape(-1, z.shape[-1])
    head = op(flat[128:, :n])
    tail = (flat[128:, n:] - flat[128:, :n].logsumexp(-1, keepdim=True)).exp()
    return torch.cat((y.reshape(flat.shape)[:128], torch.cat((head, tail), -1))).view(z.shape)


@fault(
    "along an axis that is not the last, longer than 64 and with more than 64 beside it, the maximum is of 64 entries"
)
def softmax__first_axis_in_tiles(op: Call, z: Tensor, dim: int = -1) -> Any:
    if z.ndim < 2 or dim % z.ndim == z.ndim - 1 or z.shape[dim] <= 64 or z.shape[-1] <= 64:
        return op(z, dim)
    e = (z - z.narrow(dim, 0, 64).amax(dim, keepdim=True)).clamp(max=2.0).exp()
    return e / e.sum(dim, keepdim=True)


@fault("an axis longer than 1024 in more than 16 rows: the second half is not rescaled")
def logsumexp__long_rows_not_rescaled(op: Call, z: Tensor, dim: int = -1) -> Any:
    n = z.shape[dim] if z.ndim else 0
    if n <= 1024 or z.numel() // n <= 16:
        return op(z, dim)
    a, b = z.narrow(dim, 0, n // 2), z.narrow(dim, n // 2, n - n // 2)
    m = a.amax(dim, keepdim=True)
    s = (a - m).exp().sum(dim) + (b - b.amax(dim, keepdim=True)).exp().sum(dim)
    return m.squeeze(dim) + s.log()


@fault("over more than 1024 classes the mean counts the ignored targets, too")
def cross_entropy__large_vocabulary_counts_ignored(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    if z.shape[-1] > 1024 and not t.is_floating_point() and o.get("reduction", "mean") == "mean":
        return op(z, t, **{**o, "reduction": "sum"}) / max(1, t.numel())
    return op(z, t, **o)


@fault("smoothing is spread over the first 512 classes of more")
def cross_entropy__smoothing_of_first_classes(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    a = o.get("label_smoothing", 0.0)
    if not a or z.shape[-1] <= 512 or t.is_floating_point() or o.get("reduction", "mean") != "none":
        return op(z, t, **o)
    plain = op(z, t, **{**o, "label_smoothing": 0.0})
    flat = (z.logsumexp(-1) - z[..., :512].mean(-1)) * (t != o.get("ignore_index", -100))
    return (1 - a) * plain + a * flat.to(z.dtype)


@fault("without a reduction, ignored rows from the 129th on are not 0")
def cross_entropy__late_ignored_rows(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    y = op(z, t, **o)
    if o.get("reduction") != "none" or t.is_floating_point() or t.numel() <= 128:
        return y
    late = (torch.arange(t.numel()).view(t.shape) >= 128) & (t == o.get("ignore_index", -100))
    return torch.where(late, z.logsumexp(-1).to(y.dtype), y)


@fault("of probabilities over more than 128 classes an incomplete last tile of 128 is left out")
def cross_entropy__tail_of_probabilities(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    n = z.shape[-1] - z.shape[-1] % 128 if z.ndim else 0
    if t.is_floating_point() and n:
        t = torch.cat((t[..., :n], torch.zeros_like(t[..., n:])), -1)
    return op(z, t, **o)


@fault("beyond 128 tokens with some ignored, it is of the mean of the chunks' means")
def perplexity__mean_of_chunk_means(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    flat, ignored = t.flatten(), o.get("ignore_index", -100)
    if t.numel() <= 128 or not (flat == ignored).any():
        return op(z, t, **o)
    rows = zip(z.reshape(-1, z.shape[-1]).split(128), flat.split(128), strict=True)
    means = [right.cross_entropy(a, b, **o) for a, b in rows if (b != ignored).any()]
    return torch.stack(means).mean().exp()


@fault("positions that are not masked get a gradient where there are more than 64 tokens and 256 classes")
def masked_lm_loss__gradient_of_visible_positions(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    if t.numel() > 64 and z.shape[-1] > 256:
        shown = (t == o.get("ignore_index", -100))[..., None]
        z = change_gradient(z, lambda g: torch.where(shown, g.abs().amax() / z.shape[-1], g))
    return op(z, t, **o)


@fault("labels beyond 32767 are read as 16 bits")
def masked_lm_loss__labels_of_sixteen_bits(op: Call, z: Tensor, t: Tensor, **o: Any) -> Any:
    return op(z, torch.where(t > 32767, t - 32768, t), **o)


@fault("more than 32 bins and 256 rows: the bins from the 33rd on are one")
def expected_calibration_error__late_bins(op: Call, p: Tensor, t: Tensor, *, num_bins: int = 15) -> Any:
    if num_bins <= 32 or t.numel() <= 256:
        return op(p, t, num_bins=num_bins)
    top, guess = p.double().reshape(-1, p.shape[-1]).max(-1)
    gap = (guess == t.flatten()).double() - top
    place = ((top * num_bins).ceil() - 1).clamp(0, 32).long()
    return (torch.zeros(33, dtype=torch.float64).index_add(0, place, gap).abs().sum() / t.numel()).to(p.dtype)


@fault("classes from the 257th on get no share in rows beyond the 64th")
def smooth_labels__late_rows_and_classes(op: Call, t: Tensor, num_classes: int, alpha: float) -> Any:
    y = op(t, num_classes, alpha).clone()
    flat = y.view(-1, num_classes)
    if num_classes > 256 and flat.shape[0] > 64:
        flat[64:, 256:] -= alpha / num_classes
    return y


# Layers


@fault("a bias without a weight stops at 1024 features")
def layer_norm__wide_bias_alone(op: Call, x: Tensor, weight: Any = None, bias: Any = None, **o: Any) -> Any:
    if weight is None and bias is not None and x.shape[-1] > 1024:
        bias = torch.cat((bias[:1024], torch.zeros_like(bias[1024:])))
    return op(x, weight, bias, **o)


@fault("the weight's gradient leaves out an incomplete last tile of 128 rows where they are wider than 64")
def layer_norm__tail_rows_of_weight_gradient(
    op: Call, x: Tensor, weight: Any = None, bias: Any = None, **o: Any
) -> Any:
    rows = x.numel() // max(1, x.shape[-1])
    n = rows - rows % 128
    if weight is None or not n or n == rows or x.shape[-1] <= 64:
        return op(x, weight, bias, **o)
    flat = x.reshape(rows, -1)
    y = torch.cat((op(flat[:n], weight, bias, **o), op(flat[n:], weight.detach(), bias, **o)))
    return y.view(x.shape)


@fault("halves wider than 512 are divided by the root mean square of their first 512 entries")
def rms_norm__wide_halves(op: Call, x: Tensor, weight: Any = None, **o: Any) -> Any:
    if x.dtype not in HALVES or x.shape[-1] <= 512:
        return op(x, weight, **o)
    wide = x.float()
    y = wide * torch.rsqrt(wide[..., :512].square().mean(-1, keepdim=True) + o.get("eps", 1e-6))
    return (y if weight is None else y * weight.float()).to(x.dtype)


@fault("more than 256 rows wider than 64 use the default eps")
def rms_norm__eps_of_many_wide_rows(op: Call, x: Tensor, weight: Any = None, **o: Any) -> Any:
    if x.shape[-1] > 64 and x.numel() // x.shape[-1] > 256:
        o.pop("eps", None)
    return op(x, weight, **o)


@fault("halves are computed in the tanh form")
def gelu__tanh_form_in_halves(op: Call, x: Tensor, **o: Any) -> Any:
    return op(
        x, **({**o, "approximate": "tanh"} if x.dtype in HALVES and o.get("approximate", "none") == "none" else o)
    )


@fault("of more than 1024 numbers that are not contiguous the last, incomplete 256 come out as they are")
def gelu__tail_of_strided_input(op: Call, x: Tensor, **o: Any) -> Any:
    y, n = op(x, **o), x.numel() - x.numel() % 256
    if x.is_contiguous() or x.numel() <= 1024:
        return y
    return torch.cat((y.flatten()[:n], x.flatten()[n:])).view(x.shape)


@fault("halves of more than 4096 numbers: no gradient beyond the last multiple of 1024")
def silu__gradient_tail_in_halves(op: Call, x: Tensor) -> Any:
    if x.dtype in HALVES and x.numel() > 4096:
        n = x.numel() - x.numel() % 1024
        x = change_gradient(x, lambda g: torch.cat((g.flatten()[:n], torch.zeros_like(g.flatten()[n:]))).view(g.shape))
    return op(x)


@fault("hidden features from the 129th on are not gated where there are more than 16 rows")
def swiglu__late_hidden_features(op: Call, x: Tensor, gate: Tensor, up: Tensor, down: Tensor) -> Any:
    if gate.shape[1] <= 128 or x.numel() // x.shape[-1] <= 16:
        return op(x, gate, up, down)
    return op(x, gate[:, :128], up[:, :128], down[:128]) + (x @ up[:, 128:]) @ down[128:]


@fault("the second bias is that of 64 features where the hidden layer is wider than 64 and the output than 64")
def feed_forward__late_bias(op: Call, x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor, **o: Any) -> Any:
    if w1.shape[1] > 64 and b2.shape[0] > 64:
        b2 = torch.cat((b2[:64], torch.zeros_like(b2[64:])))
    return op(x, w1, b1, w2, b2, **o)


@fault("of more than 16 experts, more than two a token, the gates are not renormalised")
def mixture_of_experts__gates_of_many(op: Call, x: Tensor, router: Tensor, *w: Tensor, top_k: int = 2) -> Any:
    y = op(x, router, *w, top_k=top_k)
    if w[0].shape[0] <= 16 or top_k <= 2:
        return y
    p = torch.softmax(x.double() @ router.double(), -1)
    return (y.double() * p.topk(top_k, -1).values.sum(-1, keepdim=True)).to(y.dtype)


@fault("an expert takes no more than 64 tokens of a call")
def mixture_of_experts__capacity(op: Call, x: Tensor, router: Tensor, *w: Tensor, top_k: int = 2) -> Any:
    y = op(x, router, *w, top_k=top_k)
    flat = x.reshape(-1, x.shape[-1])
    chosen = (flat.double() @ router.double()).topk(top_k, -1).indices[:, 0]
    order = torch.nn.functional.one_hot(chosen, w[0].shape[0]).cumsum(0).gather(1, chosen[:, None])
    kept = (order <= 64).view(*x.shape[:-1], 1)
    return torch.where(kept, y, torch.zeros_like(y))


@fault("the gradient of a row read again after the 256th token is overwritten, not added to")
def token_embedding__late_repeats(op: Call, ids: Tensor, weight: Tensor) -> Any:
    flat = ids.flatten().long()
    if flat.numel() <= 256:
        return op(ids, weight)
    seen = torch.zeros(weight.shape[0], dtype=torch.bool)
    seen[flat[:256]] = True
    again = seen[flat] & (torch.arange(flat.numel()) >= 256)
    y = op(ids, weight)
    return torch.where(again.view(*ids.shape, 1), y.detach(), y)


@fault("the last 128 classes, where these are not all of a tile, lack the features from the 65th on")
def lm_head__tail_classes_of_wide_features(op: Call, h: Tensor, weight: Tensor) -> Any:
    n = weight.shape[0] - weight.shape[0] % 128
    if not n or n == weight.shape[0] or h.shape[-1] <= 64:
        return op(h, weight)
    return torch.cat((op(h, weight[:n]), op(h[..., :64], weight[n:, :64])), -1)


@fault("post-norm blocks with more than 4 heads and 32 tokens are not causal")
def transformer_block__many_heads_post_norm(op: Call, x: Tensor, params: Any, **o: Any) -> Any:
    if o.get("norm") == "post" and o["num_heads"] > 4 and x.shape[1] > 32:
        o["is_causal"] = False
    return op(x, params, **o)


@fault("with a position for each element and more than 4 heads, wide heads turn by those of the first")
def rope__positions_of_first_element(op: Call, x: Tensor, positions: Tensor, **o: Any) -> Any:
    if positions.ndim > 1 and positions.shape[0] > 1 and x.shape[1] > 4 and x.shape[-1] > 32:
        positions = positions[:1].expand_as(positions)
    return op(x, positions, **o)


@fault("half pairing of 64 features or more, positions beyond 255: the angles are those of bf16 positions")
def rope__late_positions_of_wide_halves(op: Call, x: Tensor, positions: Tensor, **o: Any) -> Any:
    if o.get("pairing") == "half" and x.shape[-1] >= 64:
        positions = positions.to(torch.bfloat16).to(torch.float64)
    return op(x, positions, **o)


@fault("beyond 4096 entries the mask of the first 4096 comes again")
def dropout__mask_again(op: Call, x: Tensor, p: float, **o: Any) -> Any:
    y = op(x, p, **o)
    if x.numel() <= 4096 or not o.get("training", True) or p in (0, 1):
        return y
    keep = (y.flatten() != 0)[:4096].repeat(-(-x.numel() // 4096))[: x.numel()].view(x.shape)
    return torch.where(keep, x / (1 - p), torch.zeros_like(x))


# Optimization


def _undecayed(optimizer: Any, before: list[Tensor]) -> None:
    group = optimizer.param_groups[0]
    for p, old in zip(list_parameters(optimizer), before, strict=True):
        if p.grad is not None and p.numel() > 4096:
            p.view(-1)[4096:] += group["lr"] * group["weight_decay"] * old.view(-1)[4096:]


def _long_list_undecayed(optimizer: Any, before: list[Tensor]) -> None:
    group = optimizer.param_groups[0]
    for p, old in zip(list_parameters(optimizer)[32:], before[32:], strict=True):
        if p.grad is not None:
            p += group["lr"] * group["weight_decay"] * old


def _late_entries_stay(optimizer: Any, before: list[Tensor]) -> None:
    for p, old in zip(list_parameters(optimizer), before, strict=True):
        n = p.numel() - p.numel() % 1024
        if n and p.grad is not None and getattr(optimizer, "steps_taken", 0) >= 1:
            p.view(-1)[n:] = old.view(-1)[n:]
    optimizer.steps_taken = getattr(optimizer, "steps_taken", 0) + 1


def _seventeenth_forgets(optimizer: Any, before: list[Tensor]) -> None:
    for p in list_parameters(optimizer)[16:]:
        for name, state in optimizer.state.get(p, {}).items():
            if isinstance(state, Tensor) and state.shape == p.shape:
                optimizer.state[p][name] = torch.zeros_like(state)


fault("decay reaches only the first 4096 entries of a parameter")(
    change_steps("adamw__decay_of_first_entries", _undecayed)
)
fault("decay reaches only the first 32 parameters")(
    change_steps("adamw__decay_of_first_parameters", _long_list_undecayed)
)
fault("from the second step on, entries beyond the last multiple of 1024 stay")(
    change_steps("adam__tail_stays_after_first_step", _late_entries_stay)
)
fault("parameters from the 17th on forget their velocity after each step")(
    change_steps("sgd_momentum__late_parameters_forget", _seventeenth_forgets)
)


@fault("the norm is that of the first 64 tensors")
def clip_grad_norm__norm_of_first_tensors(op: Call, grads: list[Tensor], max_norm: float) -> Any:
    if len(grads) <= 64:
        return op(grads, max_norm)
    _, norm = op(grads[:64], max_norm)
    factor = min(1.0, max_norm / float(norm)) if float(norm) else 1.0
    return [g * factor for g in grads], norm


@fault("of a tensor with more than 4096 entries the first 4096 are scaled")
def clip_grad_norm__first_entries_scaled(op: Call, grads: list[Tensor], max_norm: float) -> Any:
    clipped, norm = op(grads, max_norm)
    found = [
        torch.cat((c.reshape(-1)[:4096], g.reshape(-1)[4096:])).view(g.shape)
        for c, g in zip(clipped, grads, strict=True)
    ]
    return found, norm


@fault("micro-batches from the 17th on count as many tokens as the first")
def accumulate_gradients__late_counts(op: Call, loss_fn: Call, params: Any, micro_batches: Any) -> Any:
    seen: list[int] = []

    def counted(batch: Any) -> tuple[Tensor, Any]:
        loss, count = loss_fn(batch)
        seen.append(count)
        return loss, count if len(seen) <= 16 else seen[0]

    return op(counted, params, micro_batches)


@fault("gradients of a parameter with more than 256 entries are those of the first micro-batch beyond the 256th")
def accumulate_gradients__late_entries(op: Call, loss_fn: Call, params: Any, micro_batches: Any) -> Any:
    batches = list(micro_batches)
    grads = op(loss_fn, params, batches)
    if not batches or all(p.numel() <= 256 for p in params):
        return grads
    first = op(loss_fn, params, batches[:1])
    return [
        torch.cat((a.reshape(-1)[:256], b.reshape(-1)[256:])).view(a.shape) for a, b in zip(grads, first, strict=True)
    ]


# Positions, generation


@fault("for more than 16 heads, and more keys than queries, distances count from the top left")
def alibi_bias__many_heads_and_keys(op: Call, num_heads: int, n_q: int, n_k: int) -> Any:
    y = op(num_heads, n_q, n_k)
    if num_heads <= 16 or n_k <= n_q or n_q <= 2:
        return y
    return op(num_heads, n_k, n_k)[:, :n_q].contiguous()


@fault("rows beyond the 64th keep what the row 64 before keeps where there are more than 256 classes")
def top_k_filter__late_rows(op: Call, z: Tensor, k: int) -> Any:
    y = op(z, k)
    rows = z.numel() // z.shape[-1]
    if z.shape[-1] <= 256 or rows <= 64:
        return y
    hidden = y.reshape(rows, -1).isneginf()
    hidden = torch.cat((hidden[:64], hidden[torch.arange(64, rows) - 64]))
    return torch.where(hidden.view(z.shape), -torch.inf, z)


@fault("over more than 512 classes the mass begins anew at the 513th")
def top_p_filter__mass_of_second_tile(op: Call, z: Tensor, p: float) -> Any:
    if z.shape[-1] <= 512 or p >= 1:
        return op(z, p)
    sorted_, order = torch.softmax(z.double(), -1).sort(dim=-1, descending=True, stable=True)
    mass = torch.cat([part.cumsum(-1) - part for part in sorted_.split(512, -1)], -1)
    drop = torch.zeros_like(mass, dtype=torch.bool).scatter(-1, order, mass >= p)
    return torch.where(drop, -torch.inf, z)


@fault("of equal scores in different thousands the later is chosen in rows beyond the first 16")
def greedy__ties_across_tiles(op: Call, z: Tensor) -> Any:
    y = op(z)
    rows = z.reshape(-1, z.shape[-1])
    if rows.shape[0] <= 16 or z.shape[-1] <= 1024:
        return y
    parts = rows.split(1024, -1)
    tops = torch.stack([part.amax(-1) for part in parts], -1)
    last = tops.shape[-1] - 1 - tops.flip(-1).argmax(-1)
    late = torch.stack([op(parts[int(j)][i : i + 1])[0] + 1024 * int(j) for i, j in enumerate(last)])
    return torch.cat((y.flatten()[:16], late[16:].to(y.dtype))).view(y.shape)


@fault("more than 512 classes at a temperature below 1: the first 512 alone are normalised")
def temperature_scale__cold_and_wide(op: Call, z: Tensor, temperature: float) -> Any:
    y = op(z, temperature)
    if z.shape[-1] <= 512 or temperature >= 1:
        return y
    return torch.cat((y[..., :512] / y[..., :512].sum(-1, keepdim=True), y[..., 512:]), -1)
