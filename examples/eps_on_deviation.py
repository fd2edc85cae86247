"""A LayerNorm that adds eps to the standard deviation instead of the variance, as several public ones did.

veriformer verify examples/eps_on_deviation.py
"""


def layer_norm(x, weight=None, bias=None, *, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, unbiased=False)
    y = (x - mean) / (std + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias
