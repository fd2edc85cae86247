"""Layers: norms, networks of two products, activations and gradients, dropout, first weights (13–19, 36, 37, 46–49)."""
