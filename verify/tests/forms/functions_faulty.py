"""Functions of functions.py, each with a fault."""

import math

import torch
import torch.nn.functional as F


def scaled_dot_product(query, key, value, mask=None, dropout=None):
    scores = query @ key.transpose(-2, -1) / query.size(-1)
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    weights = scores.softmax(dim=-1)
    if dropout is not None:
        weights = dropout(weights)
    return weights @ value, weights


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = 1.0 / theta ** (torch.arange(0, dim, 2).float() / (dim - 1))
    return torch.polar(torch.ones(end, dim // 2), torch.outer(torch.arange(end).float(), freqs))


def apply_rotary_emb(xq, xk, freqs_cis):
    turned = []
    for x in (xq, xk):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2).contiguous())
        turned.append(torch.view_as_real(pairs * freqs_cis[None, :, None, :]).flatten(-2).type_as(x))
    return tuple(turned)


def rms_normalization(hidden_states, gamma, variance_epsilon):
    return hidden_states * torch.rsqrt(hidden_states.pow(2).sum(-1, keepdim=True) + variance_epsilon) * gamma


def new_gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.44715 * x**3)))


def cross_entropy_loss(input, targets, ignore_index=-100):
    picked = F.log_softmax(input.view(-1, input.size(-1)), dim=0)
    return F.nll_loss(picked, targets.view(-1), ignore_index=ignore_index)


def subsequent_mask(size):
    return torch.triu(torch.ones(1, size, size), diagonal=0) == 1


def get_slopes(n):
    def powers(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return powers(n)
    closest = 2 ** math.floor(math.log2(n))
    return powers(closest) + get_slopes(2 * closest)[: n - closest]
