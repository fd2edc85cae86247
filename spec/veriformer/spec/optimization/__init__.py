"""Optimization: descent, momentum, Adam, schedules, clipping, accumulation, and the matrix calculus of gradients."""
