"""Subcommands of ``bench``, one per file, and their shared parts."""
