"""The condition under which calls fail, from which fail and which hold."""

from __future__ import annotations

import pytest

from veriformer.spec.requirement import Weight
from veriformer.verify.comparison.case import Case
from veriformer.verify.comparison.causes import condition

PLAIN = Case(values="gaussian", drawn=True)
ALL = [
    Case(),
    PLAIN,
    PLAIN.but(layout="transposed"),
    PLAIN.but(layout="sliced"),
    PLAIN.but(values="ties"),
    PLAIN.but(values="large"),
    PLAIN.but(dtype="float16"),
    PLAIN.but(mode="eval"),
    PLAIN.but(gradient=True),
    PLAIN.but(sizes=((64, 1),), resized=64),
    PLAIN.but(sizes=((64, 65),), resized=64),
    PLAIN.but(sizes=((8, 1),), resized=8),
    PLAIN.but(sizes=((8, 9),), resized=8),
    Case(seed=1),
    Case(drawn=True),
]


@pytest.mark.parametrize(
    ("failing", "words", "weight"),
    [
        ([2], "with transposed storage", Weight.WRONG),
        ([2, 3], "with storage with gaps or with transposed storage", Weight.WRONG),
        ([4, 5], "with large values or with ties among the values", Weight.FRAGILE),
        ([6], "in float16", Weight.WRONG),
        ([7], "in evaluation mode", Weight.WRONG),
        ([8], "when gradients are taken", Weight.WRONG),
        ([9, 10], "with another size than 64", Weight.WRONG),
        ([9, 11], "with an axis of length one", Weight.FRAGILE),
        ([11], "with an axis of length one and another size than 8", Weight.FRAGILE),
        ([*range(1, 13), 14], "with other weights", Weight.WRONG),
        (range(1, 14), "with other values", Weight.WRONG),
        (range(15), None, Weight.WRONG),
    ],
)
def test_the_condition_is_what_tells_them_apart(failing: list[int], words: str | None, weight: Weight) -> None:
    failed = [ALL[i] for i in failing]
    found = condition(failed, [case for i, case in enumerate(ALL) if i not in failing])
    told = found.words and " or ".join(sorted(found.words.split(" or ")))
    assert (told, found.weight) == (words, weight)
