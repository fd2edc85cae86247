"""Calls that are timed, in processes of their own."""
