"""top_p_filter.all on transformers: at p = 1 a token is dropped whose probability underflows."""

import torch

from veriformer.verify import load

target = load("transformers").implementation

r = target.top_p_filter(torch.tensor([0.0, -2000.0]), 1.0)  # type: ignore[attr-defined]
print("observed", r, "exact", [0.0, -2000.0])
raise SystemExit("violated" if r[1] != -2000.0 else 0)
