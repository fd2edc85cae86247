"""PyTorch's fused attention under the contract's names: an adapter is a few lines, and imports nothing of ours.

veriformer verify examples/adapter.py
"""

from torch.nn.functional import scaled_dot_product_attention


def attention(q, k, v, *, mask=None, scale=None):
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale, enable_gqa=True)
