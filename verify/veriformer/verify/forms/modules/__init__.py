"""Forms of modules that hold their weights."""
