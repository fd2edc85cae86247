"""layer_norm.accuracy on torch: in bf16 on the CPU the gradient of the bias is summed in half precision."""

import torch

from veriformer.verify import load

target = load("torch").implementation

bias = torch.zeros(4, dtype=torch.bfloat16, requires_grad=True)
cotangent = torch.ones(9, 4, dtype=torch.bfloat16)
cotangent[0] = 256.0
x = torch.arange(36, dtype=torch.bfloat16).reshape(9, 4)
r = target.layer_norm(x, weight=torch.ones(4, dtype=torch.bfloat16), bias=bias)  # type: ignore[attr-defined]
(gradient,) = torch.autograd.grad(r, bias, cotangent)
print("observed", gradient, "exact", 264.0)
raise SystemExit("violated" if bool((gradient != 264.0).any()) else 0)
