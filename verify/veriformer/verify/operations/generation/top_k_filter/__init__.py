"""The operation ``top_k_filter``: its record and its laws."""
