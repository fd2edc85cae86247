"""What times and ratios tell in spite of noise."""
