"""What generation remembers: keys and values of the tokens so far (equations 42 to 44)."""
