from fractions import Fraction

from veriformer.bench import words
from veriformer.bench.polynomials import Polynomial


def test_what_is_taken_away_is_not_said_to_be_more():
    measured = Polynomial(("n", "d"), {(1, 1): Fraction(-8), (0, 1): Fraction(6144), (1, 0): Fraction(16)})
    assert words.leading(measured) == "16*n"
