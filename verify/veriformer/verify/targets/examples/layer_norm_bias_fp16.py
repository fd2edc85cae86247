"""layer_norm.layout on torch: in fp16 on the CPU the gradient of the bias is summed in half precision."""

import torch

from veriformer.verify import load

target = load("torch").implementation

bias = torch.zeros(4, dtype=torch.float16, requires_grad=True)
cotangent = torch.ones(9, 4, dtype=torch.float16)
cotangent[0] = 2048.0
x = torch.arange(36, dtype=torch.float16).reshape(9, 4)
r = target.layer_norm(x, weight=torch.ones(4, dtype=torch.float16), bias=bias)  # type: ignore[attr-defined]
(gradient,) = torch.autograd.grad(r, bias, cotangent)
print("observed", gradient, "exact", 2056.0)
raise SystemExit("violated" if bool((gradient != 2056.0).any()) else 0)
