"""The operation ``attention``: its record and its laws."""
