"""Caches of attention layers, and of blocks around them: how they keep and return keys and values."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.attention_calls import UNMASKED, has_tables
from veriformer.verify.forms.cached_calls import (
    OF_CONTEXT,
    Arguments,
    answers,
    copy_layer,
    find_parameter,
    keeps_calls,
    list_ways,
)
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.causality import CAUSALITY
from veriformer.verify.forms.conventions import MASKS
from veriformer.verify.forms.form import Readings
from veriformer.verify.forms.heads import MASK_AXES
from veriformer.verify.forms.interleaving import interleave_rows
from veriformer.verify.forms.layer_arguments import BATCH, TABLES, arguments_of
from veriformer.verify.forms.layer_sizes import HEADS, WIDTH, sizes_of


def find_cached_way(
    candidate: Candidate, instance: nn.Module, names: Mapping[str, str], causal: str
) -> tuple[str, ...]:
    """Return the way in which a layer gets earlier calls, as the only reading; no reading where it keeps none."""
    parameters, sizes = candidate.parameters, sizes_of(WIDTH, HEADS, HEADS, WIDTH // HEADS, WIDTH)
    weights, causal = dict(instance.named_parameters()), causal if causal == UNMASKED else CAUSALITY[0]
    x = torch.randn(2, 6, WIDTH, generator=torch.Generator().manual_seed(0))

    def asked(given: Tensor, readings: Readings) -> Arguments:
        q, options = (x, {"context": given}) if readings["cached"] in OF_CONTEXT else (given, {})
        return lambda part: arguments_of(
            q, options, names, readings, parameters, HEADS, WIDTH // HEADS, part=part, angle=0
        )

    of_tables = [{"tables": tables} for tables in TABLES] if has_tables(names) else [{}]
    masks = list(itertools.product(MASKS, MASK_AXES[:4])) if "mask" in names else [(MASKS[0], MASK_AXES[0])]

    @functools.cache  # most masks and tables are refused whatever the way: each is tried once, not once for each way
    def answered(way: str) -> list[dict[str, str]]:
        usual = [
            {"causal": causal, "batch": BATCH[0], "mask": mask, "mask_axes": axes, "cached": way, **tables}
            for tables, (mask, axes) in itertools.product(of_tables, masks)
        ]
        layer = copy_layer(instance, weights, way, "", candidate)
        return [one for one in usual if answers(layer, asked(x, one), x)]

    for way, parameter in list_ways(parameters, names.get("start")):
        make = functools.partial(copy_layer, instance, weights, way, parameter, candidate)
        for one in answered(OF_CONTEXT[0] if way in OF_CONTEXT else ""):
            told = functools.partial(asked, readings={**one, "cached": way})
            if keeps_calls(make, told, x, {**sizes, "batch": x.shape[0]}):
                return (way,)
    return ()


@dataclass(frozen=True)
class Pieces:
    """The calls in pieces of a layer that keeps earlier calls, if it does: its class, its parameters by role, and the
    readings by which it is called."""

    candidate: Candidate
    names: Mapping[str, str]
    readings: Readings

    def interleave(
        self,
        result: Tensor,
        layer: tuple[nn.Module, Mapping[str, Tensor]],
        arguments: Arguments,
        x: Tensor,
        options: Mapping[str, Any],
        sizes: Mapping[str, Any],
    ) -> Tensor:
        """Return the result of one call, with rows in turn of what calls in pieces give, where the call may come so.

        layer: module and weights. arguments: of a part. options: of the whole call. sizes: of the module.
        """
        way, context = self.readings.get("cached"), options.get("context")
        if way is None or not _comes_in_pieces(way, x, options):
            return result
        n_k, axis = (x if context is None else context).shape[1], int(self.readings["batch"] == BATCH[0])
        with contextlib.suppress(Exception):  # its cache is too small for this batch or length
            parameter = find_parameter(way, self.candidate.parameters, self.names.get("start"))
            own = copy_layer(*layer, way, parameter, self.candidate)
            sizes = {**sizes, "batch": len(x)}
            return interleave_rows(result, own.call_in_pieces(arguments, x.shape[1], n_k, axis, sizes))
        return result


def _comes_in_pieces(way: str, x: Tensor, options: Mapping[str, Any]) -> bool:
    """Return whether a call is one that may come in pieces: causal, of one text of tokens, or over a context."""
    if x.shape[1] < 2:
        return False
    if way in OF_CONTEXT:
        return not options.get("is_causal")
    return bool(options.get("is_causal")) and options.get("attention_mask") is None and options.get("context") is None
