"""Transformer blocks: attention and feed-forward network as branches of a residual stream (equations 32 to 35)."""
