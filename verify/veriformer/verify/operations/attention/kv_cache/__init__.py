"""The operation ``kv_cache``: its record and its laws."""
