"""The operation ``transformer_block``: its record and its laws."""
