"""Attention in several subspaces at once (equations 26 and 27)."""
