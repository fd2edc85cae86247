"""What a correct implementation may lose in one operation beyond the rounding of its result."""

# Unit in the last place is at most 2u of the result. Sources: the CUDA C++ programming guide (appendix on the accuracy
# of mathematical functions) lists for fp32 expf 1, logf 1, tanhf 1, erff 2, sinf and cosf 2, sqrtf 0 and for fp64
# exp 1, log 1, tanh 1, erf 2, sin and cos 2; the vector library SLEEF behind PyTorch's CPU kernels states 1.0 for all.
ULPS: dict[str, float] = {
    "sqrt": 1.0,
    "exp": 2.0,
    "log": 2.0,
    "tanh": 2.0,
    "erf": 2.0,
    "sin": 2.0,
    "cos": 2.0,
}

# exp(x) as exp2(x · log₂e): the constant and the product are rounded, each costing |x| u of the result.
EXP_ARGUMENT_ROUNDINGS = 2.0

# x / s as x · (1 / s): the reciprocal, the product, and one for a reciprocal within an ulp.
DIVISION_ROUNDINGS = 3.0
