"""Sabotage: the specification with one mutation at a time, to find out what holds it: proofs, tests, or nothing."""
