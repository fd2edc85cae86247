"""Attention of one head: scores, masks, weights, and their gradients."""
