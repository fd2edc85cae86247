"""Mutations that change the text and not what it says: nothing can notice them."""

EQUIVALENT: dict[str, str] = {}
"""The name of a mutation, and why it is equivalent."""
