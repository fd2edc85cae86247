"""Adam of labml.ai's annotated implementations: python labml_adam.py CLONE

labmlai/annotated_deep_learning_paper_implementations at e6b3c8a6a2cd, labml_nn/optimizers/adam.py; PyTorch 2 on a CPU.
"""

import importlib
import math
import sys
from types import ModuleType

import torch

sys.modules.setdefault("labml", ModuleType("labml")).tracker = None  # it only logs
sys.path.insert(0, sys.argv[1])
Adam = importlib.import_module("labml_nn.optimizers.adam").Adam

gradient, lr, beta, eps = 1e-3, 0.1, (0.9, 0.999), 1e-3
for optimized in (True, False):
    p = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    p.grad = torch.full_like(p, gradient)
    Adam([p], lr=lr, betas=beta, eps=eps, optimized_update=optimized).step()
    print(f"optimized_update={optimized}: {p.item():.6f}")
print(f"Algorithm 1: {-lr * gradient / (gradient + eps):.6f}")
for name, factor in (("printed", 1 - beta[1]), ("square root", math.sqrt(1 - beta[1]))):
    p = torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))
    p.grad = torch.full_like(p, gradient)
    Adam([p], lr=lr, betas=beta, eps=factor * eps).step()
    print(f"with the {name} ε̂: {p.item():.6f}")
