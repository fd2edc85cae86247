"""The spaces of symbols are those of their values: in draws of an equation's arguments, or in its proofs."""

import sys
from pathlib import Path

import numpy as np
import pytest

from veriformer.spec.proofs.spaces import Mapped, MisfitError, fits, sizes_of, spaces

sys.path.insert(0, str(Path(__file__).parent))

from drawn_letters import EQUATIONS, IN_WORDS, drawn

DRAWS = 60
# Symbols whose values nothing here computes: what is printed of their space, nobody checks.
FREE = {
    "attention-gradients": {"G_X"},
    "hidden-layer-backward": {"odot"},
    "masked-lm-loss": {"x"},
    **{key: {"odot"} for key in ("mlp-output-gradient", "mlp-output-weights", "mlp-hidden-weights")},
    **{key: {"R^(i)"} for key in ("rope", "rope-relative-position")},
}


def values(equation):
    """Of every symbol that has a value: its space, and the value with the sizes of its draw, draw by draw."""
    rng, found = np.random.default_rng(0), {}
    symbols = [pair for s in equation.symbols for pair in spaces(s.name, s.space)]
    for _ in range(DRAWS):
        arguments, own = drawn(equation.slug, rng)
        known, sizes = {}, {}
        for name, space in symbols:
            value = own.get(name, argument(arguments, name))
            if value is not None:
                known[name] = value
                sizes_of(space, value, sizes)
        sizes |= {name: value for name, value in own.items() if isinstance(value, int | float)}
        for name, space in symbols:
            if (value := known.get(name, sizes.get(name))) is not None:
                found.setdefault((name, space), []).append((value, sizes))
    return found


def argument(arguments, name):
    names = (n for n in (name, name.lower(), IN_WORDS.get(name, name)) if n in arguments)
    value = next((arguments[n] for n in names if np.asarray(arguments[n], dtype=object).dtype.kind != "U"), None)
    return value if np.asarray(value).dtype.kind in "fi" else None


@pytest.mark.parametrize("slug", EQUATIONS)
def test_spaces_are_those_of_the_values(slug):
    found = values(EQUATIONS[slug])
    for (_, space), draws in found.items():
        fits(space, draws)
    names = {name for s in EQUATIONS[slug].symbols for name, _ in spaces(s.name, s.space)}
    assert names - {name for name, _ in found} == FREE.get(slug, set())


REALS = np.array([-1.5, 0.25, 2.0])


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (r"\mathbb{Z}", REALS),
        (r"\mathbb{R}_{> 0}", REALS),
        (r"\mathbb{R}", abs(REALS)),
        (r"\mathbb{R}", np.arange(3)),
        (r"\mathbb{N}", np.arange(3)),
        (r"\mathbb{N}_0", np.arange(1, 3)),
        ("(0, 1]", np.array([0, 0.5])),
        ("[0, 1)", np.array([1, 0.5])),
        (r"\{0, 1\}", np.array([0, 2])),
        (r"\{0, \dots, n - 1\}", np.array([3])),
        (r"\mathbb{R}^{n + 1}", REALS),
        (r"\mathbb{R}^{n \times n}", REALS),
        (r"\mathbb{R}^2", REALS),
        (r"\mathbb{R}^m", REALS),
        (r"\mathbb{R} \to \mathbb{R}", Mapped(REALS, abs(REALS))),
    ],
)
def test_other_spaces_do_not_fit(space, value):
    fits(r"\mathbb{R}^n", [(REALS, {"n": 3})])
    with pytest.raises(MisfitError):
        fits(space, [(value, {"n": 3})])


def test_texts_and_lists_of_them_fit_their_spaces():
    pairs = [(b"a", b"b"), (b"ab", b"a")]
    fits(r"\Sigma^*", [("a text", {})])
    fits(r"(\Sigma^* \times \Sigma^*)^*", [(pairs, {})])
    for space in (r"\Sigma^*", r"(\Sigma^* + \Sigma^*)^*", r"(\Sigma^*)^*"):
        with pytest.raises(MisfitError):
            fits(space, [(pairs, {})])


def test_a_letter_is_one_size_in_a_draw():
    sizes = {}
    sizes_of(r"\mathbb{R}^{n \times d}", np.ones((2, 3)), sizes)
    with pytest.raises(MisfitError, match="n"):
        sizes_of(r"\mathbb{R}^n", np.ones(3), sizes)
