"""Key–value caches: keys and values of the tokens so far (equations 42 to 44)."""
