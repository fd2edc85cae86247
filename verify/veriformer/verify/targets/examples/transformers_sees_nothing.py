"""attention.empty_row on transformers: a query that sees nothing gets a mean of values under a cap, not zeros."""

import torch

from veriformer.verify import load

target = load("transformers").implementation

q, k, v = torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 1, 2), torch.ones(1, 1, 1, 1)
r = target.attention(q, k, v, softcap=2.0, mask=torch.tensor([[False]]))  # type: ignore[attr-defined]
print("observed", r, "exact", 0.0)
raise SystemExit("violated" if r.any() else 0)
