"""What the contract fixes: signatures, dtypes, kinds of models."""
