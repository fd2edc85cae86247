"""Forms of caches."""
