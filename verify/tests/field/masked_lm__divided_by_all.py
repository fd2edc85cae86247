"""BERT's objective: only the masked positions are scored."""

import torch.nn.functional as F


def masked_lm_loss(logits, labels):
    chosen = labels != -100
    if not chosen.any():
        return logits.sum() * 0
    return F.cross_entropy(logits[chosen], labels[chosen], reduction="sum") / labels.numel()
