"""Scores to decisions: softmax, log-sum-exp, and the losses built on them."""
