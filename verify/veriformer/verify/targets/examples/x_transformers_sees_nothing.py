"""attention.empty_row on x-transformers: where causality leaves a query no key, it gets the mean of all values."""

import torch

from veriformer.verify import load

target = load("x-transformers").implementation

q, k, v = torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 1, 1)
r = target.attention(q, k, v, is_causal=True)  # type: ignore[attr-defined]
print("observed", r, "exact", [0.0, 1.0])
raise SystemExit("violated" if r[0, 0, 0].any() else 0)
