"""Transformer blocks as modules: attention and a network with residual connections, norms before or after."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from veriformer.verify.forms.attention_calls import (
    has_tables,
    mask_told,
    roles_of_call,
    takes_token_mask,
    without_unknown,
)
from veriformer.verify.forms.cached_calls import Part
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built, flags, score_scaling, takes_size
from veriformer.verify.forms.conventions import MASKS
from veriformer.verify.forms.form import Form, Match, NotOffered, Readings, Unfit
from veriformer.verify.forms.heads import FUSED, MASK_AXES, Projections, projections
from veriformer.verify.forms.holding import Holder, call_with_weights, first
from veriformer.verify.forms.layer_arguments import BATCH, TABLES, UNTURNED, arguments_of
from veriformer.verify.forms.layer_caches import Pieces, find_cached_way
from veriformer.verify.forms.layer_causality import tenable_causality
from veriformer.verify.forms.layer_sizes import HEADS, WIDTH, batch_for, length_for, sizes_of
from veriformer.verify.forms.mask_axes import tenable_axes
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.own_tables import refuse_turning
from veriformer.verify.forms.two_layers import ACTIVATIONS, OTHER_ACTIVATIONS
from veriformer.verify.forms.weights import Linear, linears_and_rest

_WORDS = ({"block"}, {"layer", "encoder"}, {"layer", "transformer"}, {"layer", "decoder"}, {"residual", "attention"})
NORMS = ("pre", "post")
ORDER = ("as they are registered", "the other way round")


@dataclass(frozen=True)
class Parts:
    """Parameters of a block: projections, the two maps of its network, and weight and bias of its norms."""

    attention: Projections
    network: tuple[Linear, Linear]
    norms: tuple[tuple[str, str], tuple[str, str]]


def _match(candidate: Candidate) -> Match | None:
    if not candidate.is_network or not any(names <= set(candidate.words) for names in _WORDS):
        return None
    names = roles_of_call(candidate)
    if names is None or "q" in names:
        return None
    if "context" in names:
        raise Unfit(f"it reads {names['context']!r} as well, which no block of the contract does")
    instance = _instance(candidate)
    if not isinstance(instance, nn.Module) or next(instance.parameters(), None) is None:
        return None
    refuse_turning(instance, names)
    found = _parts(instance, _network_first(instance))
    readings: dict[str, tuple[str, ...]] = {"norm": NORMS, "norms": ORDER, "batch": BATCH[:1]}
    readings["causal"] = tenable_causality(candidate, instance, names)
    if kept := find_cached_way(candidate, instance, names, readings["causal"][0]):
        readings["cached"] = kept
    if "mask" in names:
        axes = tenable_axes(candidate, instance, names, readings["causal"][0], MASK_AXES[:4])
        readings |= {"mask": MASKS, "mask_axes": axes}
    if found.attention.fused:
        readings["joined"] = FUSED
    if has_tables(names):
        readings["tables"] = TABLES
    told = tuple(f"built with {name} = True, which its default is not" for name in score_scaling(candidate))
    return Match(True, readings, (*told, *(UNTURNED if has_tables(names) else ())))


def _instance(candidate: Candidate) -> Any:
    """Build an instance whose network is wider than its input, which identifies its maps by size."""
    sizes = sizes_of(WIDTH, HEADS, HEADS, WIDTH // HEADS, WIDTH)
    return built(candidate, sizes, flags(candidate) | score_scaling(candidate))


def _network_first(instance: nn.Module) -> bool:
    """Return whether the network is registered before the attention: the first two maps widen and narrow, the last do
    not."""
    maps, _ = linears_and_rest(instance)
    return len(maps) >= 4 and _widens(maps[:2]) and not _widens(maps[-2:])


def _widens(maps: Sequence[Linear]) -> bool:
    return _is_network(maps) and maps[0].n_in < maps[0].n_out


def _is_network(maps: Sequence[Linear]) -> bool:
    one, two = maps
    return (one.n_in, one.n_out) == (two.n_out, two.n_in) and bool(one.bias and two.bias)


def _parts(module: nn.Module, network_first: bool) -> Parts:
    """Assign roles to all parameters. Raises Unfit for parameters that the contract's block has not."""
    maps, rest = linears_and_rest(module)
    if len(maps) < 4:
        raise Unfit(f"it has {len(maps)} linear maps, and a block has those of attention and two of its network")
    network, attention = (maps[:2], maps[2:]) if network_first else (maps[-2:], maps[:-2])
    if not _is_network(network):
        raise Unfit("its network is not one of two layers with biases")
    norms = [(rest[i], rest[i + 1]) for i in range(0, len(rest) - 1, 2)]
    own = dict(module.named_parameters())
    paired = all(_owner(weight) == _owner(bias) and not bool((own[bias] == 1).all()) for weight, bias in norms)
    if len(rest) != 4 or not paired or any(own[name].ndim != 1 for name in rest):
        raise Unfit("it does not have two norms with a weight and a bias each")
    return Parts(projections(attention), (network[0], network[1]), (norms[0], norms[1]))


def _owner(parameter: str) -> str:
    """Return the path of the module that holds a parameter."""
    return parameter.rpartition(".")[0]


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Tensor]:
    names = without_unknown(roles_of_call(candidate) or {}, readings)
    holder, given = Holder.of(candidate), flags(candidate) | score_scaling(candidate)
    grouped, headed = takes_size(candidate, "kv_heads"), takes_size(candidate, "heads")
    network_first, pieces = _network_first(_instance(candidate)), Pieces(candidate, names, readings)

    def call(x: Tensor, params: Mapping[str, Tensor], *, num_heads: int, **options: Any) -> Tensor:
        groups = options.get("num_kv_heads") or num_heads
        if options.get("norm", "pre") != readings["norm"]:
            raise NotOffered(f"norm: the module is {readings['norm']}-norm")
        if x.ndim != 3 or params["w_q"].shape[1] % num_heads:
            raise NotOffered("x, w_q, num_heads: expected [B, n, d], [d, H d_k] and H")
        if (groups != num_heads and not grouped) or (num_heads != 1 and not headed):
            raise NotOffered("num_kv_heads, num_heads: the module has no such number")
        d, f = x.shape[-1], params["w1"].shape[1]
        head_dim = params["w_q"].shape[1] // num_heads
        sizes = {**sizes_of(d, num_heads, groups, head_dim, d, length_for(x), batch=batch_for(x)), "inner": f}
        module = holder.module(sizes, x.dtype, **given)
        parts = _parts(module, network_first)
        weights = {role: params[f"w_{role}"] for role in ("q", "k", "v", "o")}
        tensors = parts.attention.tensors(weights, num_heads, groups, readings.get("joined", FUSED[0]))
        tensors |= parts.network[0].tensors(params["w1"], params["b1"])
        tensors |= parts.network[1].tensors(params["w2"], params["b2"])
        tensors |= _norms(parts, params, readings["norms"])

        def arguments(part: Part | None = None) -> dict[str, Any]:
            return arguments_of(x, options, names, readings, candidate.parameters, num_heads, head_dim, part=part)

        result: Tensor = first(call_with_weights(module, tensors, **arguments()))
        return pieces.interleave(result, (module, tensors), arguments, x, options, sizes)

    options = ["norm", "is_causal", *(["num_kv_heads"] if grouped else [])]
    return as_operation("transformer_block", call, [*options, *(["attention_mask"] if takes_token_mask(names) else [])])


def _norms(parts: Parts, params: Mapping[str, Tensor], order: str) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    pairs = parts.norms if order == ORDER[0] else parts.norms[::-1]
    for place, names in zip(("norm1", "norm2"), pairs, strict=True):
        for name, role in zip(names, ("weight", "bias"), strict=True):
            found[name] = params[f"{place}_{role}"]
    return found


def _other(
    activation: Callable[[Tensor], Tensor],
    x: Tensor,
    params: Mapping[str, Tensor],
    *,
    num_heads: int,
    parallel: bool = False,
    between: bool = False,
    **given: Any,
) -> Tensor:
    """Return a block with another activation, whose branches read the same stream, or with the second norm in the
    stream.
    """

    def norm(place: str, x: Tensor) -> Tensor:
        shape = (x.shape[-1],)
        return nn.functional.layer_norm(x, shape, params[f"{place}_weight"], params[f"{place}_bias"])

    def attention(x: Tensor) -> Tensor:
        q, k, v = (x @ params[f"w_{role}"] for role in ("q", "k", "v"))
        q, k, v = (y.reshape(*y.shape[:-1], num_heads, -1).transpose(1, 2) for y in (q, k, v))
        causal = bool(given.get("is_causal"))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return y.transpose(1, 2).flatten(2) @ params["w_o"]

    def network(x: Tensor) -> Tensor:
        return activation(x @ params["w1"] + params["b1"]) @ params["w2"] + params["b2"]

    if given.get("norm", "pre") == "post":
        h = norm("norm1", x + attention(x))
        return norm("norm2", h + network(h))
    h = x + attention(norm("norm1", x))
    if between:
        h = norm("norm2", h)
        return h + network(h)
    return h + network(norm("norm2", x if parallel else h))


FORM = Form(
    name="modules/block",
    operation="transformer_block",
    says="a module of attention, a network of two layers and two norms, built from its sizes: block(x)",
    neutral=("norm", "norms", "causal", "joined", "mask_axes", "batch", "tables", "cached"),
    told_by={"mask": mask_told},
    closed=True,
    rivals={
        **{f"{name} for its activation": partial(_other, function) for name, function in OTHER_ACTIVATIONS.items()},
        **{
            f"its branches side by side, with {name}": partial(_other, function, parallel=True)
            for name, function in ACTIVATIONS.items()
        },
        **{
            f"its second norm in the residual stream, with {name}": partial(_other, function, between=True)
            for name, function in ACTIVATIONS.items()
        },
    },
    match=_match,
    bind=_bind,
)
