"""Online softmax: a pass over blocks of columns, with a running maximum and sum."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        top = x.new_full((*x.shape[:-1], 1), float("-inf"))
        total = torch.zeros_like(top)
        for block in x.split(4096, dim=-1):
            new = torch.maximum(top, block.amax(-1, keepdim=True))
            total = total * torch.exp(top - new) + torch.exp(block - new).sum(-1, keepdim=True)
            top = new
        return torch.exp(x - top) / total
