"""Statistics of noisy times and ratios."""
