"""Forms of whole models."""
