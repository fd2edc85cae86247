"""Mutations that change the text and not what it says: nothing can notice them."""

EQUIVALENT: dict[str, str] = {
    "statement:generation/beam_search.py:beam-search:number:1": "what is largest is so at twice its size too",
}
"""The name of a mutation, and why it is equivalent."""
