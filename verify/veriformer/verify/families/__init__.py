"""Checks that apply to every operation, or to every one of a kind."""
