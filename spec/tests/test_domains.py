"""The spaces of symbols are those of the arguments that are drawn for them, where an argument has a symbol's name."""

import re

import numpy as np
import pytest

from veriformer.spec.proofs.latex_reader import spoken
from veriformer.spec.registry import equations

DRAWS = 60
# Arguments that are named in words where the statement has a letter.
IN_WORDS = {"eta": "lr", "epsilon": "eps", "eta_max": "max_lr", "T_warmup": "warmup_steps", "T_total": "total_steps"}
IN_WORDS |= {"t": "step", "gamma": "weight", "T": "temperature", "R": "router", "PE": "table", "alpha": "scale"}
IN_WORDS |= {
    "g_i": "values",
    "W_i^Q": "w_q",
    "W^O": "w_o",
    "Q": "q",
    "K": "k",
    "V": "v",
    "M": "num_bins",
    "H": "num_heads",
}
_SPACE = re.compile(r"(\\mathbb\{[RNZ]\}|[\[(]0, 1[\])])(_0|_\{(?:\\ge|>) ?0\})?(?:\^(\w|\{.*\}))?")


def drawn(equation):
    """Of each symbol that is an argument too: its name, its space, and what is drawn for it."""
    rng = np.random.default_rng(0)
    draws = [equation.sample(rng) for _ in range(DRAWS)]
    for symbol in equation.symbols:
        for name in map(spoken, symbol.name.split(",")):
            for argument in {name, name.lower(), IN_WORDS.get(name, name)} & set(draws[0]):
                values = [np.asarray(draw[argument]) for draw in draws if draw[argument] is not None]
                if values and values[0].dtype.kind in "fi" and "\\dots" not in symbol.space:
                    yield name, symbol.space, values


CASES = [(e.slug, *case) for e in equations() if e.sample for case in drawn(e)]


@pytest.mark.parametrize(("slug", "name", "space", "values"), CASES, ids=[f"{c[0]}:{c[1]}" for c in CASES])
def test_a_space_is_that_of_what_is_drawn(slug, name, space, values):
    found = _SPACE.fullmatch(space)
    assert found, space
    assert found[1] + (found[2] or "") in spaces(np.concatenate([x.ravel() for x in values]))
    axes = re.sub(r"^\{(.*)\}$", r"\1", found[3] or "").split(r" \times ") if found[3] else []
    assert all(x.ndim >= len(axes) for x in values)
    # Every axis has a size of its own, or a product: no sum.
    assert not any("+" in axis or "-" in axis for axis in axes), axes


def spaces(numbers):
    """The spaces that fit: no larger than what is drawn needs, but for the ends of intervals."""
    if numbers.dtype.kind == "i":
        return {r"\mathbb{N}_0"} if numbers.min() == 0 else {r"\mathbb{N}"}
    if numbers.min() < 0:
        return {r"\mathbb{R}"}
    positive = {r"\mathbb{R}_{\ge 0}", r"\mathbb{R}_{> 0}"}
    return positive | {"[0, 1]", "(0, 1]", "[0, 1)", "(0, 1)"} if numbers.max() <= 1 else positive
