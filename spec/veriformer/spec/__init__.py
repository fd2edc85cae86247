"""Mathematics of the operations: formulas, proofs, oracles and error bounds. Never imports torch."""
