"""The operation ``linear_attention``: its record and its laws."""
