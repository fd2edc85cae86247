"""Counting as a person asks for it: what there is to count, where it is counted, and what is shown."""
