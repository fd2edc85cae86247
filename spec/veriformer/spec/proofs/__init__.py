"""The prover, what it remembers, and the tools that proofs are written with."""
