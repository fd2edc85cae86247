"""Code that looks like an operation of the contract and is another one, or none."""

import torch
from torch import nn
from torch.nn import functional as F


class GatedFeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1, self.w3 = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        return self.w2(F.gelu(self.w1(x)) * self.w3(x))


class MLP(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)) ** 2)


class RelativeAttention(nn.Module):
    def __init__(self, d_model, n_head):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.distance = nn.Parameter(torch.zeros(n_head, 32))

    def forward(self, x):
        return self.o(self.q(x) * self.k(x) + self.v(x))


class LinearAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.to_q, self.to_k, self.to_v, self.to_out = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v))
        return self.to_out((q.softmax(-1) @ (k.softmax(-2).transpose(-2, -1) @ v)).transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_1, self.w_2, self.layer_norm = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        return self.layer_norm(x + self.w_2(torch.relu(self.w_1(x))))


def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


def apply_rotary(xq, xk, cos, sin):
    return xq * cos[:, None] * sin[:, None], xk


def attention_scores(query, key, temperature):
    return query @ key.transpose(-2, -1) / temperature


class LayerNorm2d(nn.Module):
    """Over channels, which come before height and width."""

    def __init__(self, num_channels, eps=1e-6):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(num_channels)), nn.Parameter(torch.zeros(num_channels))
        self.eps = eps

    def forward(self, x):
        return layer_norm_of_images(x, self.gamma, self.beta, self.eps)


def layer_norm_of_images(x, weight, bias, eps=1e-6):
    variance, mean = torch.var_mean(x, 1, keepdim=True, unbiased=False)
    return (x - mean) * torch.rsqrt(variance + eps) * weight.view(1, -1, 1, 1) + bias.view(1, -1, 1, 1)


def rms_normalization(x, eps=1e-6):
    return x * torch.rsqrt(x.square().mean(1, keepdim=True) + eps)


def hard_swish(x):
    return x * F.relu6(x + 3) / 6


class ReverseRotary(nn.Module):
    """Turns back what a rotary embedding turned."""

    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("rates", base ** (-torch.arange(0, dim, 2) / dim))

    def forward(self, x):
        angles = torch.outer(torch.arange(x.shape[-2]), self.rates)
        a, b = x.chunk(2, -1)
        return torch.cat((a * angles.cos() + b * angles.sin(), b * angles.cos() - a * angles.sin()), -1)


class ClassifierMLP(nn.Module):
    """A network of two layers whose result is probabilities."""

    def __init__(self, input_size, hidden_size, output_size):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(input_size, hidden_size), nn.Linear(hidden_size, output_size)
        self.soft = nn.Softmax(1)

    def forward(self, x):
        return self.soft(self.fc2(torch.relu(self.fc1(x))))
