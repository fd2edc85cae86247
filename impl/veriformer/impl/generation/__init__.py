"""Generation: from scores to the next token, and from tokens to a text."""
