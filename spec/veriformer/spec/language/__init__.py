"""Language: texts as tokens, their embeddings and probabilities (equations 38 to 40)."""
