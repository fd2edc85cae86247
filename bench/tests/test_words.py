from fractions import Fraction

import pytest

from veriformer.bench import words
from veriformer.bench.polynomials import Polynomial


def test_what_is_taken_away_is_not_said_to_be_more():
    measured = Polynomial(("n", "d"), {(1, 1): Fraction(-8), (0, 1): Fraction(6144), (1, 0): Fraction(16)})
    assert words.leading(measured) == "16*n"


@pytest.mark.parametrize(
    ("measured", "claimed", "said"),
    [
        (4, 2, "4*n**2*d instead of 2*n**2*d"),
        (0, 2, "the 2*n**2*d of the formula is missing"),
        (3, 0, "3*n**2*d that the formula does not have"),
    ],
)
def test_a_term_is_told_with_what_it_should_be(measured, claimed, said):
    assert words.instead(("n", "d"), (2, 1), measured, claimed) == said
