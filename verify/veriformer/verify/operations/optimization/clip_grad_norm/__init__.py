"""The operation ``clip_grad_norm``: its record and its laws."""
