"""Ours beside what others would use, on this processor: ratios of two sides that took turns."""
