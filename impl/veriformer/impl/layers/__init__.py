"""Layers: norms, activations, feed-forward networks, multi-head and linear attention, embeddings, and the block."""
