"""Student's t distribution: how far a mean of few runs may be off, in units of their own spread."""

from __future__ import annotations


def quantile(freedom: int, share: float) -> float:
    """The value that a number of so many degrees of freedom stays below with a probability of ``share``."""
    from scipy.special import stdtrit  # which takes a quarter of a second, where most processes ask for none

    return float(stdtrit(freedom, share))
