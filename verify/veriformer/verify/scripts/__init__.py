"""Counterexamples as scripts, and the functions that they quote."""
