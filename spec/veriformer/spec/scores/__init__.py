"""Scores to probabilities, and the losses of probabilities."""
