"""Findings: root causes, ranked, each with the rows that it explains."""
