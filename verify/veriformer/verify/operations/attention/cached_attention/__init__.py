"""The operation ``cached_attention``: its record and its laws."""
