"""The operation ``rope``: its record and its laws."""
