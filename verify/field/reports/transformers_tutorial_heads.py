"""The heads of transformers-tutorial's efficient attention: python transformers_tutorial_heads.py CLONE

feather-ai/transformers-tutorial at 64bfae218513, layers/efficient_mha.py; PyTorch on a CPU.
"""

import sys
from collections.abc import Callable

import torch
from torch.nn import functional as F

sys.path.insert(0, sys.argv[1])
from layers.efficient_mha import MultiHeadAttention

torch.manual_seed(0)
tokens, heads, width = 8, 4, 16
layer = MultiHeadAttention(width, heads).eval()
x = torch.randn(1, tokens, width)
unhidden = torch.arange(tokens) < tokens - 2  # as create_src_mask says of two tokens of padding at the end


def theirs(x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    """[1, n, d] to [1, n, d]."""
    found: torch.Tensor = layer(x, x, x, mask)[0]
    return found


def right(x: torch.Tensor) -> torch.Tensor:
    """Apply the layer's own projections, with the width split into heads."""
    maps = (layer.linear_Q, layer.linear_K, layer.linear_V)
    q, k, v = (linear(x).unflatten(-1, (heads, -1)).transpose(1, 2) for linear in maps)
    found: torch.Tensor = layer.mha_linear(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
    return found


def seen(attend: Callable[[torch.Tensor], torch.Tensor]) -> list[int]:
    """The tokens on which the result of the last one depends."""
    slope = torch.autograd.functional.jacobian(lambda x: attend(x)[0, -1], x)[:, 0]
    return [token for token in range(tokens) if float(slope[:, token].abs().max()) > 0]


with torch.no_grad():
    print(f"largest difference: {float((theirs(x) - right(x)).abs().max()):.1e}")
    off = (theirs(x, unhidden) - theirs(x)).abs().amax((0, 2))
print(f"the last token sees {seen(theirs)}, and should see {seen(right)}")
print(f"token 0 sees tokens 0 and 1 alone, and changes by {float(off[0]):.1e} when tokens 6 and 7 are hidden")
