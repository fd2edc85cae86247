"""Calls of layers: N rows of width d, hidden width f, output width o, E experts of which two are asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from veriformer.bench.operations.family import Call, Costs, Family, Operation, Sizes, classes, on, random, substituted
from veriformer.bench.operations.scores import named, rowwise
from veriformer.spec import costs
from veriformer.spec.blocks.costs_block import block_flops, block_other, block_parameters
from veriformer.spec.heads.weights import backward_flops, bytes_at_least
from veriformer.spec.heads.weights import flops as heads_flops
from veriformer.spec.heads.weights import peak_extra_bytes as heads_peak
from veriformer.spec.language.costs_language import language_costs
from veriformer.spec.layers.costs_layers import EXPERTS, GATED, NETWORK, elementwise

_HEADS = 2
_NETWORK = ("N d", "d f", "f", "f o", "o")


def _network(known: dict[str, Callable[[], Any]], **sizes: Any) -> Costs:
    """Costs of a network, whose activation and biases work on N f and N o elements."""
    n, f, o = (costs.symbol(x) for x in "Nfo")
    whole = {**known, "other operations": lambda: 6 * n * f + n * o}
    return named({name: substituted(cost, **sizes) for name, cost in whole.items()})


def _one_width(cost: Callable[[], Any]) -> Callable[[], Any]:
    """In the letters of a self-attention: _HEADS heads, each with its own key head, of width d / _HEADS."""
    width = costs.symbol("d") / _HEADS
    return substituted(cost, n_q="n", n_k="n", H=_HEADS, G=_HEADS, d_k=width, d_v=width)


def _heads(operation: Operation, s: Sizes) -> Call:
    tensors = [random(s["B"], s["n"], s["d"]), *(random(s["d"], s["d"]) for _ in range(4))]
    return Call(lambda: operation(*tensors, num_heads=_HEADS), tensors)


def _block(operation: Operation, s: Sizes) -> Call:
    d, f = s["d"], s["f"]
    shapes = {"w_q": (d, d), "w_k": (d, d), "w_v": (d, d), "w_o": (d, d), "w1": (d, f), "b1": (f,), "w2": (f, d)}
    shapes |= {"b2": (d,), "norm1_weight": (d,), "norm1_bias": (d,), "norm2_weight": (d,), "norm2_bias": (d,)}
    x, params = random(s["B"], s["n"], d), {name: random(*shape) for name, shape in shapes.items()}
    return Call(lambda: operation(x, params, num_heads=_HEADS), [x, *params.values()])


def _embedding(operation: Operation, s: Sizes) -> Call:
    ids, weight = classes(s["N"], below=s["V"]), random(s["V"], s["d"])
    return Call(lambda: operation(ids, weight), [ids, weight])


def _drawn(operation: Operation, s: Sizes) -> Call:
    return Call(lambda: operation(s["d"], s["f"]), gradients=False)


def _dropout(operation: Operation, s: Sizes) -> Call:
    x = random(s["N"], s["d"])
    return Call(lambda: operation(x, 0.5), [x])


def _experts(operation: Operation, s: Sizes) -> Call:
    n, d, f, e = (s[x] for x in "NdfE")
    tensors = [random(n, d), random(d, e), random(e, d, f), random(e, f), random(e, f, d), random(e, d)]
    return Call(lambda: operation(*tensors, top_k=2), tensors)


def _again() -> Any:
    """Return the FLOPs that attention in blocks recomputes in the backward pass."""
    return costs.tiled_backward_flops() - costs.attention_backward_flops()


def _block_bytes() -> Any:
    b, n, d, w = (costs.symbol(x) for x in ("B", "n", "d", "w"))
    return w * (2 * b * n * d + block_parameters())


def _hidden() -> Any:
    """The hidden layer, before its activation and after."""
    return 2 * costs.symbol("w") * costs.symbol("B") * costs.symbol("n_q") * costs.symbol("f")


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
_EXPERTS = {name: substituted(cost, o="d", k=2) for name, cost in EXPERTS.items()}
_EXPERTS["bytes"] = _EXPERTS["bytes if all experts are asked"]
_HEAD = named({**language_costs("lm_head"), "backward FLOPs": lambda: 2 * language_costs("lm_head")["FLOPs"]()})
_DRAWN = Costs(
    flops=lambda: costs.symbol("w") * 0,
    moved=lambda: costs.symbol("w") * costs.symbol("d") * costs.symbol("f"),
)

FAMILIES = (
    Family("mse_loss", "N d", on("N d", "N d"), named(elementwise(3))),
    Family("mlp", "N d f o", on(*_NETWORK), _network(NETWORK)),
    Family("layer_norm", "N d", on("N d", "d", "d"), rowwise("layer_norm")),
    Family("rms_norm", "N d", on("N d", "d"), rowwise("rms_norm")),
    Family("residual", "N d", on("N d", "N d"), named(elementwise(2, arrays=3))),
    Family("gelu", "N d", on("N d"), named(elementwise(5))),
    Family("silu", "N d", on("N d"), named(elementwise(4))),
    Family("feed_forward", "N d f", on("N d", "d f", "f", "f d", "d"), _network(NETWORK, o="d")),
    Family("swiglu", "N d f", on("N d", "d f", "d f", "f d"), _network(GATED, o="d")),
    Family("mixture_of_experts", "N d f E", _experts, named(_EXPERTS), values=True),
    Family("dropout", "N d", _dropout, named(elementwise(2, arrays=3))),
    Family("xavier_normal", "d f", _drawn, _DRAWN),
    Family("token_embedding", "N d V", _embedding, named(language_costs("token_embedding"))),
    Family("lm_head", "N d V", on("N d", "V d"), _HEAD),
    Family("multi_head_attention", "B n d", _heads, _HEADS_COSTS),
    Family("transformer_block", "B n d f", _block, _BLOCK_COSTS),
)
