"""The operation ``cross_entropy``: its record and its laws."""
