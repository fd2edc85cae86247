"""The scale of makeMoE's heads: python makemoe_scale.py CLONE

AviSoori1x/makeMoE at 0d68228adb1e, makeMoE.py; PyTorch on a CPU.
"""

import os
import sys

import torch
from torch.nn import functional as F

os.chdir(sys.argv[1])  # it reads input.txt when it is imported
sys.path.insert(0, ".")
import makeMoE  # noqa: E402

torch.manual_seed(0)
head = makeMoE.Head(makeMoE.head_size).eval()
x = torch.randn(1, 8, makeMoE.n_embed)
q, k, v = head.query(x), head.key(x), head.value(x)
with torch.no_grad():
    found = head(x)
    for name, width in (("of a head", q.shape[-1]), ("of the model", x.shape[-1])):
        right = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=width**-0.5)
        print(f"scaled by the width {name} ({width}): largest difference {float((found - right).abs().max()):.1e}")
