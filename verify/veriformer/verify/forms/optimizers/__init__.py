"""Forms of optimizers."""
