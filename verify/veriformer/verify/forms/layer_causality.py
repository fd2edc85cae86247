"""Causality of attention layers: built in, by a constructor's flag, or by a call's argument."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from veriformer.verify.forms.attention_calls import ALWAYS, BUILT_CAUSAL, UNMASKED, has_tables
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.causality import CAUSALITY, causality_of, follows_flag
from veriformer.verify.forms.config_names import names_read_by
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.conventions import MASKS
from veriformer.verify.forms.heads import MASK_AXES
from veriformer.verify.forms.holding import first
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.layer_arguments import BATCH, TABLES, arguments_of
from veriformer.verify.forms.layer_sizes import HEADS, WIDTH, own_flags, sizes_of


def find_causal_flag(candidate: Candidate, names: Mapping[str, str]) -> str:
    """Return the argument of the constructor, or the entry of its config, by which a layer without masks is causal;
    empty where there is none."""
    if {"mask", "is_causal"} & names.keys() or has_tables(names):
        return ""
    sizes = sizes_of(WIDTH, HEADS, HEADS, WIDTH // HEADS, WIDTH)
    readings = {"causal": CAUSALITY[0], "batch": BATCH[0]}

    def make(name: str, flag: bool) -> Callable[[Tensor], Tensor]:
        layer = built(candidate, sizes, {**own_flags(candidate), name: flag}).eval()
        call = functools.partial(arguments_of, options={}, names=names, readings=readings)
        return lambda x: first(layer(**call(x, parameters=candidate.parameters, heads=HEADS, head_dim=WIDTH // HEADS)))

    known = {*candidate.constructor, *names_read_by(candidate.thing)}
    own = (name for name in BUILT_CAUSAL if name in known)
    return next((name for name in own if follows_flag(functools.partial(make, name), WIDTH)), "")


def tenable_causality(candidate: Candidate, instance: nn.Module, names: Mapping[str, str]) -> tuple[str, ...]:
    """Return the readings of causality that a layer of width ``WIDTH`` may have, by its default behaviour.

    One that is causal without a mask is always so, where masks that hide nothing leave it so.
    """
    instance.eval()
    parameters = candidate.parameters

    def of(causal: str, mask: str, axes: str, tables: str) -> Callable[[Tensor], Tensor]:
        usual = {"causal": causal, "batch": BATCH[0], "mask": mask, "mask_axes": axes, "tables": tables}
        readings = usual if has_tables(names) else {k: v for k, v in usual.items() if k != "tables"}

        def layer(x: Tensor) -> Tensor:
            theirs = arguments_of(x, {}, names, readings, parameters, HEADS, WIDTH // HEADS, angle=0)
            result: Tensor = first(instance(**theirs))
            return result

        return layer

    of_tables = TABLES if has_tables(names) else TABLES[:1]
    layers = {tables: of(CAUSALITY[0], MASKS[0], MASK_AXES[0], tables) for tables in of_tables}
    found = {tables: causality_of(layer, WIDTH) for tables, layer in layers.items()}
    sure = {tables: one for tables, one in found.items() if len(one) == 1}
    (tables, one), *_ = (sure or found).items()
    if one != (ALWAYS,) or "mask" not in names or parameters[names["mask"]].default is not None:
        return one
    shown = (of(UNMASKED, mask, axes, tables) for mask in MASKS for axes in MASK_AXES)
    bare = any(causality_of(x, WIDTH) == CAUSALITY[:1] and _same_at_the_end(x, layers[tables]) for x in shown)
    return (UNMASKED,) if bare else one


def _same_at_the_end(layer: Callable[[Tensor], Tensor], causal: Callable[[Tensor], Tensor]) -> bool:
    """Return whether the last position, which sees all either way, is the same, as no mask that hides all leaves it."""
    x = torch.randn(1, 5, WIDTH, generator=torch.Generator().manual_seed(0))
    with torch.random.fork_rng(), torch.no_grad():
        return nearly_equal(layer(x)[:, -1], causal(x)[:, -1])
