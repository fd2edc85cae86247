"""Everything in place, on its own copy."""

import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        if torch.is_grad_enabled():
            return torch.softmax(x, -1)
        y = x.clone(memory_format=torch.contiguous_format)
        y.sub_(y.amax(-1, keepdim=True)).exp_()
        return y.div_(y.sum(-1, keepdim=True))
