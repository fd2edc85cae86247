"""Tensors of more numbers than a person reads, in a script: their bytes, packed."""

from __future__ import annotations

import base64
import inspect
import zlib

import torch

LARGE = 512
"""A tensor of more numbers than this is packed, and of what it is judged by only the worst entries are written."""


def unpacked(text: str, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Return the tensor whose bytes these are."""
    return torch.frombuffer(bytearray(zlib.decompress(base64.b85decode(text))), dtype=dtype).reshape(shape)


def packed(x: torch.Tensor) -> str:
    """Return the expression of a tensor: a call of ``unpacked``."""
    raw = x.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
    text = base64.b85encode(zlib.compress(raw, 9)).decode()
    return f"unpacked({text!r}, {x.dtype}, {tuple(x.shape)!r})"


def definition(script: str) -> list[str]:
    """Return the lines that a script needs where it unpacks tensors."""
    if "unpacked(" not in script:
        return []
    return ["import base64", "import zlib", "", "", inspect.getsource(unpacked), ""]
