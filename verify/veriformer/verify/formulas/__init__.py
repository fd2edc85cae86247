"""Formulas of the spec as implementations: over PyTorch tensors, as written or with edits of their source."""
