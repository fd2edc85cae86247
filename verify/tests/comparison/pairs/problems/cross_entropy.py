import torch
import torch.nn.functional as F


def loss(logits, target):
    return F.cross_entropy(logits, target)


def get_inputs():
    return [torch.randn(24, 50), torch.randint(0, 50, (24,))]
