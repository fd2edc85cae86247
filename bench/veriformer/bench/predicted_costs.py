"""Predicted costs of each algorithm of attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from veriformer.bench.operations.family import Costs as Predicted
from veriformer.spec import costs

Cost = Callable[[], Any]


@dataclass(frozen=True)
class Costs:
    """The specification's costs of one way to compute attention, as SymPy expressions; None where it holds none.

    Those named causal have n_q = n_k. peak: extra bytes, of which the growth with n is claimed.
    """

    forward: Cost
    backward: Cost
    causal_forward: Cost
    causal_backward: Cost
    peak: Cost

    def flops(self, *, causal: bool, backward: bool) -> Any:
        """Return the FLOPs of the forward pass, or of both passes."""
        forward, back = (self.causal_forward, self.causal_backward) if causal else (self.forward, self.backward)
        return forward() + back() if backward else forward()


def _in_visited_blocks(cost: Cost) -> Cost:
    """Restrict a cost to the pairs in blocks that a causal mask does not hide as a whole."""
    return lambda: cost() / (costs.symbol("n_q") * costs.symbol("n_k")) * costs.causal_block_pairs()


AS_PRINTED = Costs(
    forward=costs.attention_flops,
    backward=costs.attention_backward_flops,
    causal_forward=costs.attention_flops,
    causal_backward=costs.attention_backward_flops,
    peak=costs.reference_attention_peak,
)

IN_BLOCKS = Costs(
    forward=costs.attention_flops,
    backward=costs.tiled_backward_flops,
    causal_forward=costs.tiled_causal_flops,
    causal_backward=_in_visited_blocks(costs.tiled_backward_flops),
    peak=costs.tiled_attention_peak,
)


IN_BLOCKS_WORD, AS_PRINTED_WORD = "in blocks", "as printed"


def adapt(variant: str | None, known: Predicted) -> Predicted:
    """Return the costs that a target is held to which says how it computes attention; others have one way only.

    As printed, every head has keys of its own. In blocks, the scores are never held as a whole.
    """
    if known.total_in_blocks is None or variant is None:
        return known
    if variant == IN_BLOCKS_WORD:
        return replace(known, extra=known.extra_in_blocks, others=known.others_in_blocks or known.others)
    return replace(known, moved=known.moved_as_printed or known.moved)
