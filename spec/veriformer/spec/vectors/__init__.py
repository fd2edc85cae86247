"""Vectors: distances, angles and entropies, and what becomes of them in high dimension (document 002, section 4)."""
