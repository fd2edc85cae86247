"""Three optimizers of pytorch_optimizer 4.1.0: python pytorch_optimizer_steps.py; PyTorch 2 on a CPU."""

import torch
from pytorch_optimizer import SRMM, AdaBound, Adan


def parameter() -> torch.Tensor:
    """Two ones to be trained."""
    return torch.ones(2, dtype=torch.float64, requires_grad=True)


up, down = parameter(), parameter()
for p, sign in ((up, 1.0), (down, -1.0)):
    trainer = Adan([p], lr=0.1, maximize=sign > 0)
    for g in (1.0, 0.5):
        p.grad = torch.full_like(p, sign * g)
        trainer.step()
print("Adan, maximize by g:", up.tolist(), "minimize by -g:", down.tolist())

p = parameter()
p.grad = torch.zeros_like(p)
SRMM([p], lr=0.0).step()
print("SRMM, one step by a gradient of 0 at a rate of 0, from 1:", p.tolist())

p, late = parameter(), parameter()
trainer = AdaBound([p])
trainer.add_param_group({"params": [late]})
p.grad, late.grad = torch.ones_like(p), torch.ones_like(late)
try:
    trainer.step()
except IndexError as error:
    print("AdaBound, a step with a group that was added:", repr(error))
