import torch


def running(x):
    return x @ torch.ones(x.shape[1], x.shape[1], dtype=x.dtype).triu()
