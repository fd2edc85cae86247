"""Position: encodings that are added, rotations of queries and keys, biases of the scores (equations 28 to 31)."""
