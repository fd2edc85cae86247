"""Catalogue of all checks, and their selection."""
