"""Judgement of single examples: calls, references, verdicts and their records."""
