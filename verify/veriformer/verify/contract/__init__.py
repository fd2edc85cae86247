"""Contract of the operations: signatures, dtypes, features of calls."""
