"""Error bounds, in ulps, of operations whose correct results need not be the nearest numbers.

An ulp of a result y is at most 2 u |y|, and is the smallest subnormal where y is subnormal.
"""

from collections.abc import Mapping
from types import MappingProxyType

# The whole error in ulps, no smaller than the largest that these sources state for fp32 and fp64. The first two count
# from the correctly rounded result, hence half an ulp more here.
# - CUDA C++ Programming Guide, "Mathematical Functions", maximum ulp errors: exp and log 1, tanh, erf, sin and cos 2;
# - GNU C Library manual, "Known Maximum Errors in Math Functions", x86-64: exp, log, erf, sin and cos 1, tanh 2;
# - SLEEF, whose u10 functions PyTorch's CPU kernels call: 1.0 for all;
# - PTX ISA: 2 for div.full.f32, Triton's division of fp32; relatively 2^−23, so 1, for sqrt.approx.f32.
ULPS: Mapping[str, float] = MappingProxyType(
    {
        "sqrt": 1.0,
        "exp": 2.0,
        "log": 2.0,
        "tanh": 2.5,
        "erf": 2.5,
        "sin": 2.5,
        "cos": 2.5,
        # Also covers x · (1 / s), a rounding each for the reciprocal and the product: (1 + u)² − 1 ≤ 4 u.
        "divide": 2.0,
    }
)

# PyTorch's vectorised erf of the halves computes in fp32 after Abramowitz and Stegun 7.1.26, whose error is 1.5e−7
# (2.5 · 2^−24) absolute, not relative, before rounding; so do its fp32 kernels on some platforms.
ERF_ABSOLUTE = 8.0 * 2.0**-24
