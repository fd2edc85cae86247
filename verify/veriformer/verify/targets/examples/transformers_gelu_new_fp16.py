"""gelu.limits[fp16-cpu] on transformers: the gradient far from zero is NaN, not 1."""

import torch

from veriformer.verify import load

target = load("transformers").implementation

x = torch.tensor([149.0], dtype=torch.float16, requires_grad=True)
target.gelu(x, approximate="tanh").backward()  # type: ignore[attr-defined]
print("observed", x.grad, "exact", 1.0)
raise SystemExit("violated" if x.grad is None or x.grad.isnan() else 0)
