"""Whole models: how they are asked, what they can do, and how far rounding alone moves them."""
