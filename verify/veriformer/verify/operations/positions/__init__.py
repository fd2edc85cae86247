"""Encodings of positions."""
