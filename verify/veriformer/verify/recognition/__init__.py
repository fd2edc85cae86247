"""Recognition: which operations of the contract a piece of code offers, in which form, by which reading."""
