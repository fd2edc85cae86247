"""Names of the four floating-point formats, and how they may be spelled."""

from __future__ import annotations

from veriformer.spec.suggestion import meant

NAMES: tuple[str, ...] = ("fp64", "fp32", "bf16", "fp16")
HALVES: tuple[str, ...] = ("bf16", "fp16")

_ALIASES = {
    "float64": "fp64", "double": "fp64", "float32": "fp32", "float": "fp32",
    "bfloat16": "bf16", "float16": "fp16", "half": "fp16",
}  # fmt: skip


def canonical(name: str) -> str:
    """Return the record's name of a format, from any usual spelling (``float32``, ``torch.float32``, ``fp32``).

    Raises ValueError with the known names for anything else.
    """
    short = str(name).removeprefix("torch.").lower()
    short = _ALIASES.get(short, short)
    if short not in NAMES:
        raise ValueError(f"dtype: expected one of {', '.join(NAMES)}, got {name!r}{meant(short, (*NAMES, *_ALIASES))}")
    return short
