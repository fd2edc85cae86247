"""Detection of regressions: two versions that take turns in fresh processes."""
