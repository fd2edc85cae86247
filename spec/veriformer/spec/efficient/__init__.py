"""Attention that is cheaper: caches of keys and values, and linear attention (equations 42 to 45)."""
