"""An encoder layer of the original paper: post-norm only, one module that is filled with the given weights."""

import torch
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d, d_ff, heads):
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(d, 3 * d, bias=False)
        self.out_proj = nn.Linear(d, d, bias=False)
        self.linear1, self.linear2 = nn.Linear(d, d_ff), nn.Linear(d_ff, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.activation = torch.relu

    def _attend(self, x):
        q, k, v = self.in_proj(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = self.norm1(x + self._attend(x))
        return self.norm1(x + self.linear2(self.activation(self.linear1(x))))


def transformer_block(x, params, *, num_heads, norm="post", activation="relu"):
    if norm != "post" or activation != "relu":
        raise ValueError("norm, activation: 'post' and 'relu' only")
    p = {name: w.T if w.dim() == 2 else w for name, w in params.items()}
    layer = EncoderLayer(x.shape[-1], params["w1"].shape[1], num_heads)
    weights = {
        "in_proj.weight": torch.cat([p["w_q"], p["w_k"], p["w_v"]]),
        "out_proj.weight": p["w_o"],
        **{f"linear{i}.weight": p[f"w{i}"] for i in (1, 2)},
        **{f"linear{i}.bias": p[f"b{i}"] for i in (1, 2)},
        **{f"norm{i}.{kind}": p[f"norm{i}_{kind}"] for i in (1, 2) for kind in ("weight", "bias")},
    }
    return torch.func.functional_call(layer, weights, (x,))
