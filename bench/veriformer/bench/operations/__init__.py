"""Calls of every operation of the contract, of which only the sizes differ."""
