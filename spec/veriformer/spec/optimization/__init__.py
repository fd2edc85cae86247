"""Optimization: descent, momentum, Adam, schedules, accumulation, and the matrix calculus behind the gradients."""
