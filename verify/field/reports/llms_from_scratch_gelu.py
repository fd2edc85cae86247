"""GELU of LLMs-from-scratch: python llms_from_scratch_gelu.py CLONE

rasbt/LLMs-from-scratch at 28c65cdfbc33, pkg/llms_from_scratch/ch04.py, class GELU; PyTorch 2 on a CPU.
"""

import sys

import torch

sys.path.insert(0, f"{sys.argv[1]}/pkg")
from llms_from_scratch.ch04 import GELU

x = torch.tensor([1.0, 150.0], dtype=torch.float16, requires_grad=True)
GELU()(x).sum().backward()
print("float16:", x.grad)
y = GELU()(torch.tensor(2.0, dtype=torch.bfloat16))
print("bfloat16 without axes:", y.dtype)
z = torch.tensor([1.0], dtype=torch.float64)
print("float64:", float(GELU()(z) - torch.nn.functional.gelu(z, approximate="tanh")))
