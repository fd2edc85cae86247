"""Choice, search and segmentation of text."""
