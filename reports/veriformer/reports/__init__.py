"""Results of runs, as pages that a person reads."""
