"""attention.empty_row on torch:flex: a call without keys is refused, for the maximum of nothing is asked."""

import torch

from veriformer.verify import load

target = load("torch:flex").implementation

q, k, v = torch.zeros(1, 1, 2, 3), torch.zeros(1, 1, 0, 3), torch.zeros(1, 1, 0, 2)
try:
    r = target.attention(q, k, v)  # type: ignore[attr-defined]
except IndexError as error:
    raise SystemExit(f"refused: {error}") from error
print("observed", r, "exact", [0.0, 0.0])
raise SystemExit(1 if r.any() else 0)
