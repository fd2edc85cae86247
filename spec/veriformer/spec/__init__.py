"""What the mathematics says: formulas, their proofs, their oracles and their error bounds. Never imports torch."""
