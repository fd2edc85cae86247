"""Blocks: attention and a network, each with a norm and a way around it (equations 32 to 35)."""
