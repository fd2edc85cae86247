"""Findings of a run, in a person's words: the same on a terminal, on a page, in Markdown and in an exception."""
