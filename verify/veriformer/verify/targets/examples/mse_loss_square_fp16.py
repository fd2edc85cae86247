"""mse_loss.range[fp16-cpu] on torch: the mean of four squares, 90000 and three zeros, is inf, not 22496."""

import torch

from veriformer.verify import load

target = load("torch").implementation

prediction = torch.tensor([[300.0], [0.0], [0.0], [0.0]], dtype=torch.float16)
r = target.mse_loss(prediction, torch.zeros_like(prediction))  # type: ignore[attr-defined]
observed = float(r)
print("observed", observed, "exact, rounded", 22496.0)
raise SystemExit("violated" if observed != 22496.0 else 0)
