"""Text: cutting it into pieces, and learning which pieces to cut."""
