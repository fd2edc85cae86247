"""Layers: norms, activations, networks, embeddings, the block."""
