"""Perplexity of a long text, scored in chunks to save memory."""

import torch
import torch.nn.functional as F


def perplexity(logits, target, *, ignore_index=-100, chunk=4):
    logits, target = logits.reshape(-1, logits.shape[-1]), target.reshape(-1)
    total, count = logits[:0].sum(), 0
    for i in range(0, target.shape[0], chunk):
        part = target[i : i + chunk]
        n = int((part != ignore_index).sum())
        if n == 0:
            continue
        total = total + F.cross_entropy(logits[i : i + chunk], part, ignore_index=ignore_index, reduction="sum")
        count += n
    return 2.0 ** (total / max(count, 1))
