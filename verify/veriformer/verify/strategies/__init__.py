"""Hypothesis strategies for sizes, values and layouts."""

from veriformer.verify.strategies.choices import axes_of_scores, choice, maybe, option
from veriformer.verify.strategies.extents import extent
from veriformer.verify.strategies.layouts import Layout, layouts
from veriformer.verify.strategies.shapes import (
    axis_of,
    leading_shapes,
    shapes,
    sizes,
    widths,
)
from veriformer.verify.strategies.values import KINDS, Values, seeds, values

__all__ = [
    "KINDS",
    "Layout",
    "Values",
    "axes_of_scores",
    "axis_of",
    "choice",
    "extent",
    "layouts",
    "leading_shapes",
    "maybe",
    "option",
    "seeds",
    "shapes",
    "sizes",
    "values",
    "widths",
]
