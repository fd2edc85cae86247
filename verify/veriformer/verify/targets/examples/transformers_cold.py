"""temperature_scale.cold on transformers: scores over a tiny temperature are inf, and their softmax is NaN."""

import torch

from veriformer.verify import load

target = load("transformers").implementation

r = target.temperature_scale(torch.tensor([2.0, 1.0]), 1e-39)  # type: ignore[attr-defined]
print("observed", r, "exact", [1.0, 0.0])
raise SystemExit("violated" if r.isnan().any() else 0)
