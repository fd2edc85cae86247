"""Source documents of the equations: their statements, and the verdict on each."""
