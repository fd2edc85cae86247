"""ALiBi's slopes for any number of heads, and its bias by broadcasting."""

import math

import torch


def get_slopes(n):
    def power_of_two(n):
        start = 2 ** (-(2 ** -(math.log2(n) - 3)))
        return [start * start**i for i in range(n)]

    if math.log2(n).is_integer():
        return power_of_two(n)
    closest = 2 ** math.floor(math.log2(n))
    return power_of_two(2 * closest)[:n]


def alibi_slopes(num_heads):
    if num_heads < 1:
        raise ValueError("num_heads: at least 1")
    return torch.tensor(get_slopes(num_heads))


def alibi_bias(num_heads, n_q, n_k):
    queries = torch.arange(n_k - n_q, n_k).view(1, n_q, 1)
    keys = torch.arange(n_k).view(1, 1, n_k)
    return alibi_slopes(num_heads).view(num_heads, 1, 1) * -(queries - keys).abs()
