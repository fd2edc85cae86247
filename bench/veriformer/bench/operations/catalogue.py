"""Families of calls of every operation: N rows of width d, hidden width f, output width o, E experts, P parameters.

Of positions there are n, of heads H; optimizers have made s steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from veriformer.bench.operations import attention
from veriformer.bench.operations.family import (
    Call,
    Costs,
    Family,
    Operation,
    Sizes,
    named,
    recorded,
    rowwise,
    sized,
    substituted,
)
from veriformer.spec import costs
from veriformer.spec.blocks.costs_block import block_flops, block_other, block_parameters
from veriformer.spec.costs import (
    EMBEDDING,
    EXPERTS,
    GATED,
    HEAD,
    NETWORK,
    POSITIONS,
    elementwise,
    optimizer_costs,
    symbol,
)
from veriformer.spec.heads.weights import backward_flops, bytes_at_least
from veriformer.spec.heads.weights import flops as heads_flops
from veriformer.spec.heads.weights import peak_extra_bytes as heads_peak

# Scores: N rows of d logits

_BINS, _KEPT = 10, 5
_LOGITS: dict[str, Any] = {"renamed": {"V": "d", "n": "d"}}
_CHOICES: dict[str, Any] = {**_LOGITS, "gradients": False}


def _calibration(operation: Operation, s: Sizes) -> Call:
    probs, target = torch.randn(s["N"], s["d"]).softmax(-1), torch.randint(s["d"], (s["N"],))
    return Call(lambda: operation(probs, target, num_bins=_BINS), [probs, target], gradients=False)


def _smoothing(operation: Operation, s: Sizes) -> Call:
    target = torch.randint(s["d"], (s["N"],))
    return Call(lambda: operation(target, s["d"], 0.1), [target], gradients=False)


_SCORES = (
    recorded("softmax", "N d", rowwise("softmax"), **_LOGITS),
    recorded("logsumexp", "N d", rowwise("logsumexp"), **_LOGITS),
    recorded("cross_entropy", "N d", rowwise("cross_entropy"), **_LOGITS),
    recorded("perplexity", "N d", rowwise("perplexity"), **_LOGITS),
    Family("smooth_labels", "N d", _smoothing, named(elementwise(2, arrays=1))),
    recorded("temperature_scale", "N d", named(costs.lazily("temperature_scale")), 0.7, **_CHOICES),
    Family("expected_calibration_error", "N d", _calibration, named(costs.CALIBRATION, M=_BINS)),
    recorded("masked_lm_loss", "N d", rowwise("cross_entropy"), rows="B N", renamed={"B": 1, "V": "d"}),
    recorded("top_k_filter", "N d", named(costs.TOP_K, k=_KEPT), _KEPT, **_CHOICES),
    recorded("top_p_filter", "N d", named(costs.TOP_P), 0.9, **_CHOICES),
    recorded("greedy", "N d", named(costs.GREEDY), **_CHOICES),
)

# Layers

_HEADS = 2


def _network(known: Mapping[str, Callable[[], Any]], **sizes: Any) -> Costs:
    """Return the costs of a network, whose activation and biases work on N f and N o elements."""
    n, f, o = (symbol(x) for x in "Nfo")
    return named({**known, "other operations": lambda: 6 * n * f + n * o}, **sizes)


def _one_width(cost: Callable[[], Any]) -> Callable[[], Any]:
    """Substitute the letters of a self-attention: _HEADS heads, each with its own key head, of width d / _HEADS."""
    width = symbol("d") / _HEADS
    return substituted(cost, n_q="n", n_k="n", H=_HEADS, G=_HEADS, d_k=width, d_v=width)


def _block(operation: Operation, s: Sizes) -> Call:
    d, f = s["d"], s["f"]
    shapes = {"w_q": (d, d), "w_k": (d, d), "w_v": (d, d), "w_o": (d, d), "w1": (d, f), "b1": (f,), "w2": (f, d)}
    shapes |= {"b2": (d,), "norm1_weight": (d,), "norm1_bias": (d,), "norm2_weight": (d,), "norm2_bias": (d,)}
    x, params = torch.randn(s["B"], s["n"], d), {name: torch.randn(shape) for name, shape in shapes.items()}
    return Call(lambda: operation(x, params, num_heads=_HEADS), [x, *params.values()])


def _again() -> Any:
    """Return the FLOPs that attention in blocks recomputes in the backward pass."""
    return costs.tiled_backward_flops() - costs.attention_backward_flops()


def _block_bytes() -> Any:
    b, n, d, w = (symbol(x) for x in ("B", "n", "d", "w"))
    return w * (2 * b * n * d + block_parameters())


def _hidden() -> Any:
    """Return the bytes of the hidden layer, before its activation and after."""
    return 2 * symbol("w") * symbol("B") * symbol("n_q") * symbol("f")


_HEADS_COSTS = Costs(
    flops=_one_width(heads_flops),
    total=_one_width(lambda: heads_flops() + backward_flops()),
    moved=_one_width(bytes_at_least),
    others=_one_width(costs.attention_other),
    extra=_one_width(heads_peak),
    total_in_blocks=_one_width(lambda: heads_flops() + backward_flops() + _again()),
)
_BLOCK_COSTS = Costs(
    flops=_one_width(block_flops),
    total=_one_width(lambda: 3 * block_flops()),
    moved=_one_width(_block_bytes),
    others=_one_width(block_other),
    extra=_one_width(lambda: heads_peak() + _hidden()),
    total_in_blocks=_one_width(lambda: 3 * block_flops() + _again()),
    extra_in_blocks=_one_width(_hidden),
)
_EXPERTS = {**EXPERTS, "bytes": EXPERTS["bytes if all experts are asked"]}
_HEAD = named({**HEAD, "backward FLOPs": lambda: 2 * HEAD["FLOPs"]()})
_DRAWN = Costs(flops=lambda: symbol("w") * 0, moved=lambda: symbol("w") * symbol("d") * symbol("f"))
_SELF: dict[str, str | int] = {"n_q": "n", "H": 1, "G": 1, "d_k": "d", "d_v": "d", "o": "d"}
"""Letters of self-attention whose heads have d numbers together."""

_LAYERS = (
    recorded("mse_loss", "N d", named(elementwise(3))),
    recorded("mlp", "N d f o", _network(NETWORK)),
    recorded("layer_norm", "N d", rowwise("layer_norm")),
    recorded("rms_norm", "N d", rowwise("rms_norm")),
    recorded("residual", "N d", named(elementwise(2, arrays=3))),
    recorded("gelu", "N d", named(elementwise(5))),
    recorded("silu", "N d", named(elementwise(4))),
    recorded("feed_forward", "N d f", _network(NETWORK, o="d"), renamed={"o": "d"}),
    recorded("swiglu", "N d f", _network(GATED, o="d"), renamed={"o": "d"}),
    recorded(
        "mixture_of_experts",
        "N d f E",
        named(_EXPERTS, o="d", k=2),
        renamed={"o": "d"},
        options={"top_k": 2},
        values=True,
    ),
    recorded("dropout", "N d", named(elementwise(2, arrays=3)), 0.5),
    sized("xavier_normal", "d f", _DRAWN),
    recorded("token_embedding", "N d V", named(EMBEDDING)),
    recorded("lm_head", "N d V", _HEAD),
    recorded("multi_head_attention", "B n d", _HEADS_COSTS, renamed=_SELF, options={"num_heads": _HEADS}),
    Family("transformer_block", "B n d f", _block, _BLOCK_COSTS),
)

# Positions


def _rope(operation: Operation, s: Sizes) -> Call:
    x, positions = torch.randn(s["H"], s["n"], s["d"]), torch.arange(s["n"])
    return Call(lambda: operation(x, positions), [x, positions])


def _bucket(operation: Operation, s: Sizes) -> Call:
    relative = torch.arange(s["n_k"])[None, :] - torch.arange(s["n_q"])[:, None]
    return Call(lambda: operation(relative), [relative], gradients=False)


_POSITIONS = (
    sized("sinusoidal_encoding", "n d", named(POSITIONS["sinusoidal"])),
    Family("rope", "H n d", _rope, named(POSITIONS["rope"], N=symbol("H") * symbol("n"))),
    sized("alibi_slopes", "H", Costs(moved=lambda: symbol("w") * symbol("H"))),
    sized("alibi_bias", "H n_q n_k", named(POSITIONS["alibi"])),
    Family("t5_relative_position_bucket", "n_q n_k", _bucket, Costs(moved=lambda: 16 * symbol("n_q") * symbol("n_k"))),
)

# Optimizers over one tensor of P parameters, after s steps, and changes to gradients


def _stepped(operation: Operation, s: Sizes, p: torch.Tensor) -> Any:
    """Return an optimizer after s steps."""
    optimizer = operation([p], 1e-3)
    for _ in range(s["s"]):
        optimizer.step()
    return optimizer


def _step(operation: Operation, s: Sizes) -> Call:
    """Return a step after s others."""
    p = _parameter(s)
    return Call(_stepped(operation, s, p).step, [p, p.grad], gradients=False)  # type: ignore[list-item]


def _made(operation: Operation, s: Sizes) -> Call:
    """Return the making of an optimizer with s steps."""
    p = _parameter(s)
    return Call(lambda: _stepped(operation, s, p), [p, p.grad], gradients=False)  # type: ignore[list-item]


def _parameter(s: Sizes) -> torch.Tensor:
    p = torch.randn(s["P"]).requires_grad_()
    p.grad = torch.randn(s["P"])
    return p


def _clipped(operation: Operation, s: Sizes) -> Call:
    grads = [torch.randn(s["N"], s["d"])]
    return Call(lambda: operation(grads, 0.5), grads, gradients=False)


def _accumulated(operation: Operation, s: Sizes) -> Call:
    """Return the accumulation of two micro-batches of a sum."""
    p, batches = torch.randn(s["P"]).requires_grad_(), [torch.randn(s["P"]), torch.randn(s["P"])]

    def loss(batch: torch.Tensor) -> tuple[torch.Tensor, int]:
        return (p * batch).sum(), s["P"]

    return Call(lambda: operation(loss, [p], batches), [p, *batches], gradients=False)


def _optimizer(name: str) -> tuple[Family, Family]:
    step = named(optimizer_costs(name))
    known = Costs(flops=step.flops, moved=step.moved, others=step.others, waits=lambda: 0 * symbol("w"))
    return (
        Family(name, "P s", _step, known, case="a step"),
        Family(name, "P s", _made, Costs(kept=step.kept), case="state"),
    )


_OPTIMIZATION = (
    *(family for name in ("gradient_descent", "sgd_momentum", "adam", "adamw") for family in _optimizer(name)),
    Family("clip_grad_norm", "N d", _clipped, rowwise("clip_grad_norm")),
    Family("accumulate_gradients", "P", _accumulated, named(optimizer_costs("accumulation"))),
)

FAMILIES: tuple[Family, ...] = (*_SCORES, *_LAYERS, *attention.FAMILIES, *_POSITIONS, *_OPTIMIZATION)

PLAIN = {
    **dict.fromkeys(("warmup", "warmup_cosine", "noam"), "a number per step, by no operator of PyTorch"),
    **dict.fromkeys(("bpe_train", "bpe_encode", "unigram_segment"), "text, in plain Python, by no operator of PyTorch"),
    "beam_search": "it ends where the values of its scores say, so that its cost is no polynomial of sizes",
}
"""Operations that counts say nothing of, and why."""


def names() -> list[str]:
    """Return every operation of the contract."""
    return [*dict.fromkeys(family.operation for family in FAMILIES), *PLAIN, "causal_lm"]
