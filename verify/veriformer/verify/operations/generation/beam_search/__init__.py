"""The operation ``beam_search``: its record and its laws."""
