"""What the checks draw: sizes that tell axes apart, values that tell formulas apart, strides."""

from veriformer.verify.strategies.layouts import Layout, layouts
from veriformer.verify.strategies.shapes import axis_of, leading_shapes, sizes, widths
from veriformer.verify.strategies.values import KINDS, Values, seeds, values

__all__ = ["KINDS", "Layout", "Values", "axis_of", "layouts", "leading_shapes", "seeds", "sizes", "values", "widths"]
