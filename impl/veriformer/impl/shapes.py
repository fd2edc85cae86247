"""Shapes by letters: every tensor of a call says what its axes mean, and one letter is one size."""

from torch import Tensor

from veriformer.impl import checks


def match_shapes(shapes: dict[str, str], **tensors: object) -> dict[str, int]:
    """Refuse tensors that do not have the shapes written for them, such as `"... d"` or `"d f"`; return the sizes.

    A letter has the size that the first tensor gives to it; `...` stands for any leading axes. All tensors must also be
    of one floating-point dtype and on one device.
    """
    checked = {name: checks.tensor(name, tensors[name]) for name in shapes}
    checks.same_dtype_and_device(checked)
    sizes: dict[str, int] = {}
    owners: dict[str, str] = {}
    for name, x in checked.items():
        letters = _letters(name, x, shapes[name])
        for axis, letter in enumerate(reversed(letters), start=1):
            size = x.shape[-axis]
            if sizes.setdefault(letter, size) != size:
                expected = f"shape [{', '.join(shapes[name].split())}] with {letter} = {sizes[letter]}"
                advice = f"{owners[letter]} has {letter} = {sizes[letter]}, and nothing is broadcast"
                checks.raise_for(name, expected, f"shape {tuple(x.shape)}", advice)
            owners.setdefault(letter, name)
    return sizes


def _letters(name: str, x: Tensor, shape: str) -> list[str]:
    letters = shape.removeprefix("...").split()
    fits = x.ndim >= len(letters) if shape.startswith("...") else x.ndim == len(letters)
    if not fits:
        checks.raise_for(name, f"shape [{', '.join(shape.split())}]", f"shape {tuple(x.shape)}", "add or drop axes")
    return letters
