"""The operation ``multi_head_attention``: its record and its laws."""
