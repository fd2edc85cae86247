import torch
from torch import nn


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        bn, axes = self.bn, (0, 2, 3)
        if self.training:
            mean, var = x.mean(axes), x.var(axes, unbiased=False)
            n = x.numel() / x.shape[1]
            with torch.no_grad():
                bn.running_mean.lerp_(mean.to(bn.running_mean.dtype), bn.momentum)
                bn.running_var.lerp_((var * n / (n - 1)).to(bn.running_var.dtype), bn.momentum)
                bn.num_batches_tracked += 1
        else:
            mean, var = bn.running_mean, bn.running_var
        scale = bn.weight * torch.rsqrt(var + bn.eps)
        return (x - mean[:, None, None]) * scale[:, None, None] + bn.bias[:, None, None]
