"""Further commands of this package, one a file."""
