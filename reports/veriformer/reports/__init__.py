"""What was found, as pages that a person reads."""
