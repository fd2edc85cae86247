"""A residual branch with a scale."""


def residual(x, fx, *, scale=None):
    if x.shape != fx.shape:
        raise ValueError("residual: x and fx differ in shape")
    fx = fx if scale is None else scale * fx
    return x.add_(fx) if not x.requires_grad else x + fx
