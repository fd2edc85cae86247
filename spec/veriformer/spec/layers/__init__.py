"""Layers of two products, their activations and gradients, dropout, smoothing, first weights (13–18, 36, 37, 46–49)."""
