"""The operation ``mixture_of_experts``: its record and its laws."""
