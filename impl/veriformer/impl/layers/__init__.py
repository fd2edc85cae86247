"""Layers that act on each position alone."""
