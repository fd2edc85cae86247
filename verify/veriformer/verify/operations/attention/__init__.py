"""Attention, its masks and its caches."""
