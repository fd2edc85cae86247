"""top_p_filter.all on x-transformers: at p = 1 tokens are dropped where rounding takes the running sum past 1."""

import torch

from veriformer.verify import load

target = load("x-transformers").implementation

r = target.top_p_filter(torch.tensor([[-1.0, -1.0, -30.0, -2000.0, 0.0]]), 1.0)  # type: ignore[attr-defined]
print("observed", r, "exact", [[-1.0, -1.0, -30.0, -2000.0, 0.0]])
raise SystemExit("violated" if r[0, 3] != -2000.0 else 0)
