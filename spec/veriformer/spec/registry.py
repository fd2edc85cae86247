"""All equations of the specification, in the order of their numbers, and how to select some of them."""

from __future__ import annotations

import fnmatch
import importlib
import re
from collections.abc import Sequence
from functools import cache

from veriformer.spec.equation import Equation
from veriformer.spec.suggestion import meant

# Each of these modules holds a tuple EQUATIONS.
_MODULES = (
    "scores.softmax",
    "scores.cross_entropy_derivation",
    "optimization.clip_grad_norm",
    "scores.logsumexp",
    "layers.layer_norm",
    "layers.rms_norm",
    "attention.similarity",
    "attention.scaled_attention",
    "attention.masked_attention",
    "attention.score_variance",
    "attention.attention_gradients",
    "attention.online_softmax",
    "scores.perplexity",
    "heads.subspaces",
    "heads.combination",
    "heads.weights",
    "heads.grouped",
    "heads.cross",
    "positions.sinusoidal_encoding",
    "positions.rope_rotation",
    "positions.rope_scores",
    "positions.rope_scaling",
    "positions.alibi",
    "positions.t5_bias",
    "positions.learned",
    "positions.order",
    "optimization.gradient_flow",
    "optimization.descent",
    "optimization.descent_example",
    "optimization.residual_flow",
    "optimization.scaled_residual",
    "optimization.averages",
    "optimization.sgd_momentum",
    "optimization.momentum_effects",
    "optimization.adam_derivation",
    "optimization.adam_step_size",
    "optimization.weight_decay",
    "optimization.beta2_warmup",
    "optimization.warmup",
    "optimization.warmup_cosine",
    "optimization.noam",
    "optimization.accumulate_gradients",
    "optimization.training_loss",
    "optimization.mixed_precision",
    "optimization.clipping_example",
    "optimization.gradient_norms",
    "optimization.matrix_calculus",
    "optimization.matrix_gradients",
    "optimization.linear_maps",
    "language.next_token_loss",
    "language.token_embedding",
    "language.lm_head",
    "language.masked_lm_loss",
    "language.tokenizer_perplexity",
    "language.bpe",
    "language.unigram_segment",
    "generation.temperature_scale",
    "generation.expected_calibration_error",
    "generation.top_k_filter",
    "generation.greedy",
    "generation.top_p_filter",
    "generation.beam_search",
    "vectors.distances",
    "vectors.orthogonality",
    "vectors.inner_products",
    "vectors.entropy",
    "layers.mse_loss",
    "layers.activations",
    "layers.gelu",
    "layers.gelu_tanh",
    "layers.silu",
    "layers.mlp",
    "layers.mlp_gradients",
    "layers.feed_forward",
    "layers.feed_forward_dropout",
    "layers.swiglu",
    "layers.mixture_of_experts",
    "layers.dropout",
    "layers.smooth_labels",
    "layers.xavier_normal",
    "layers.weights",
    "blocks.attention_branch",
    "blocks.feed_forward_branch",
    "blocks.pre_norm",
    "blocks.post_norm",
    "blocks.decoder_block",
    "blocks.costs_block",
    "blocks.costs_model",
    "efficient.kv_cache",
    "efficient.int8",
    "efficient.cached_attention",
    "efficient.linear_recurrence",
    "efficient.costs_cache",
    "efficient.costs_attention",
)


class UnknownEquationError(ValueError):
    """A selection that matches nothing; the message says what comes close."""


@cache
def equations() -> tuple[Equation, ...]:
    """Return every equation: those with a number in its order, then those without, by slug."""
    found = [e for name in _MODULES for e in importlib.import_module(f"veriformer.spec.{name}").EQUATIONS]
    return tuple(sorted(found, key=_order))


def select(*selections: str) -> tuple[Equation, ...]:
    """Return equations by number ("24a"; "24" for 24a and 24b), range ("20-23"), slug, or glob over slugs; without any,
    all.
    """
    chosen = {e.slug: e for selection in selections for e in _matching(selection)}
    return tuple(sorted(chosen.values(), key=_order)) if selections else equations()


def _order(equation: Equation) -> tuple[int, str, str]:
    number, letter = _parse(equation.number or "") or (10**6, "")
    return number, letter, equation.slug


def _parse(text: str) -> tuple[int, str] | None:
    match = re.fullmatch(r"(\d+)([a-z]?)", text)
    return (int(match[1]), match[2]) if match else None


def _matching(selection: str) -> Sequence[Equation]:
    first, dash, last = selection.partition("-")
    low, high = _parse(first), _parse(last if dash else first)
    if low and high:
        found = [e for e in _numbered(low, high) if _numbered(low, low) and _numbered(high, high)]
    else:
        found = [e for e in equations() if fnmatch.fnmatchcase(e.slug, selection)]
    if not found:
        labels = [name for e in equations() for name in (e.label, e.slug)]
        numbers = [e.number for e in equations() if e.number]
        raise UnknownEquationError(
            f"no equation matches {selection!r}{meant(selection, labels)}: expected a number of {numbers[0]} to "
            f"{numbers[-1]} (24a, 24b, 25), a range (20-23), a slug (adamw) or a glob (*attention*); "
            f"'veriformer spec' lists all {len(equations())}"
        )
    return found


def _numbered(low: tuple[int, str], high: tuple[int, str]) -> list[Equation]:
    return [e for e in equations() if e.number and _within(_parse(e.number), low, high)]


def _within(number: tuple[int, str] | None, low: tuple[int, str], high: tuple[int, str]) -> bool:
    """Return whether low ≤ number ≤ high, where a bound without a letter means all letters of its number."""
    return number is not None and low <= number and (number <= high or (number[0] == high[0] and not high[1]))
