import math

import torch


def attention(q, k, v):
    rows = []
    for i in range(q.shape[-2]):
        scores = torch.einsum("bhd,bhsd->bhs", q[:, :, i], k[:, :, : i + 1]) / math.sqrt(q.shape[-1])
        rows.append(torch.einsum("bhs,bhsd->bhd", scores.softmax(-1), v[:, :, : i + 1]))
    return torch.stack(rows, dim=-2)
