"""layer_norm.range on torch: in fp16 on the CPU 1 / σ is kept in half precision, where that of small rows is ∞."""

import torch

from veriformer.verify import load

target = load("torch").implementation

x = torch.tensor([[0.0, 1.0, 3.0]], dtype=torch.float16) * 2.0**-17
x.requires_grad_()
r = target.layer_norm(x, eps=0.0)  # type: ignore[attr-defined]
(gradient,) = torch.autograd.grad(r, x, torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float16))
wide = x.detach().double().requires_grad_()
(exact,) = torch.autograd.grad(target.layer_norm(wide, eps=0.0), wide, torch.tensor([[0.0, 0.0, 1.0]]).double())  # type: ignore[attr-defined]
print("observed", gradient, "exact", exact)
raise SystemExit(0 if bool(gradient.isfinite().all()) else "violated")
