"""Student's t distribution: error of a mean of few runs, in units of their own spread."""

from __future__ import annotations


def quantile(freedom: int, share: float) -> float:
    """Return the ``share`` quantile of Student's t distribution with ``freedom`` degrees of freedom."""
    from scipy.special import stdtrit  # which takes a quarter of a second, where most processes ask for none

    return float(stdtrit(freedom, share))
