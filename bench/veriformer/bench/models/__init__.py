"""Whole models: what they cost in a pass, in training, and token by token."""
