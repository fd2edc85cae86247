"""What a correct implementation may lose in one operation, beyond the half ulp of rounding to nearest.

An ulp of a result y is at most 2 u |y|, and is the smallest subnormal where y is subnormal.
"""

from collections.abc import Mapping
from types import MappingProxyType

# Errors in ulps, at least as large as each of these sources states for fp32 and fp64:
# - CUDA C++ Programming Guide, appendix "Mathematical Functions", tables of maximum ulp errors: exp, log 1; tanh 1
#   (fp32) and 2; erf 2; sin, cos 2; sqrt 0;
# - SLEEF, whose u10 functions PyTorch's CPU kernels call: 1.0 for exp, log, tanh, erf, sin and cos;
# - PTX ISA: ex2.approx.f32 (behind Triton's exp) and div.full.f32 (behind Triton's division) 2, sqrt.approx.f32 1.
ULPS: Mapping[str, float] = MappingProxyType(
    {
        "sqrt": 1.0,
        "exp": 2.0,
        "log": 2.0,
        "tanh": 2.0,
        "erf": 2.0,
        "sin": 2.0,
        "cos": 2.0,
        # Also covers x · (1 / s), a rounding each for the reciprocal and the product: (1 + u)² − 1 ≤ 4 u.
        "divide": 2.0,
    }
)

# PyTorch's vectorised erf of the halves computes in fp32 after Abramowitz and Stegun 7.1.26, whose error is 1.5e−7
# (2.5 · 2^−24) absolute, not relative, before rounding; so do its fp32 kernels on some platforms.
ERF_ABSOLUTE = 8.0 * 2.0**-24
