"""Relations between calls, shared by the laws of several operations."""
