"""Formulas of the spec as a target: every operation that has one, behind the contract's argument checks."""

from __future__ import annotations

from veriformer.spec.operations import OPERATIONS
from veriformer.verify.formulas.kernels import kernel
from veriformer.verify.targets.argument_validation import with_validation

TARGET = with_validation(**{name: kernel(name) for name in OPERATIONS if name != "xavier_normal"})
"""Without what draws its result, of which the formula knows the deviation alone."""
