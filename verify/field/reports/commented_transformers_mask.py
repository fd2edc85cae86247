"""The mask that stays in CausalAttention: python commented_transformers_mask.py CLONE

warner-benjamin/commented-transformers at da3ec246b174, layers/attention.py; PyTorch on a CPU.
"""

import sys

import torch

sys.path.insert(0, sys.argv[1])
from layers.attention import CausalAttention

torch.manual_seed(0)
layer = CausalAttention(hidden_size=8, num_heads=2, context_size=4).eval()
x, padding = torch.randn(1, 4, 8), torch.tensor([[False, True, False, False]])
with torch.no_grad():
    before = layer(x)
    layer(x, mask=padding)
    after = layer(x)
print("hidden before:", 6, "hidden after a call with a mask:", int(layer.causal_mask.sum()))
print(f"the same call without a mask differs by {float((before - after).abs().max()):.1e}")
try:
    layer(torch.randn(2, 4, 8), mask=padding.expand(2, 4))
except RuntimeError as error:
    print("two sequences:", str(error)[:80])
