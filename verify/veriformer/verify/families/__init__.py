"""Families of checks, of every operation or of every one of a kind."""
