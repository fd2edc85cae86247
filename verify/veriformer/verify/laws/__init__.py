"""What laws are made of, shared by those of several operations."""
