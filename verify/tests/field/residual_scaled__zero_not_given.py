"""A residual branch with a scale."""


def residual(x, fx, *, scale=None):
    if x.shape != fx.shape:
        raise ValueError("residual: x and fx differ in shape")
    return x + (scale or 1.0) * fx
