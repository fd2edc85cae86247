"""A lower triangle, aligned to the end."""

import torch


def causal_mask(n_q, n_k):
    return torch.ones(n_q, n_k).tril(diagonal=n_k - n_q).bool().logical_not()
