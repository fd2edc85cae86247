"""Forms of plain functions."""
