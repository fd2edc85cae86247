"""What the documents say that the equations were taken from, and what became of it."""
