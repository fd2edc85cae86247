"""attention.empty_row on x-transformers:flash: the second of three queries sees both of two keys."""

import torch

from veriformer.verify import load

target = load("x-transformers:flash").implementation

q, k, v = torch.zeros(1, 1, 3, 2), torch.zeros(1, 1, 2, 2), torch.tensor([[[[1.0], [3.0]]]])
r = target.attention(q, k, v, is_causal=True)  # type: ignore[attr-defined]
print("observed", r.flatten(), "exact", [0.0, 1.0, 2.0])
raise SystemExit("violated" if r[0, 0, 1, 0] != 1.0 else 0)
