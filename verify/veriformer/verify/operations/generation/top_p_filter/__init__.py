"""The operation ``top_p_filter``: its record and its laws."""
