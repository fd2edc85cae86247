"""A residual branch with a scale."""


def residual(x, fx, *, scale=None):
    if x.shape != fx.shape:
        raise ValueError("residual: x and fx differ in shape")
    return x + fx if scale is None else x + scale * fx
