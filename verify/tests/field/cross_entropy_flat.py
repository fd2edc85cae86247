"""The usual training loss: flatten, log-softmax, pick, mean over what is not padding."""

import torch
import torch.nn.functional as F

IGNORE = -100


def cross_entropy(logits, target):
    logits = logits.view(-1, logits.size(-1))
    target = target.view(-1)
    keep = target != IGNORE
    logp = F.log_softmax(logits[keep], dim=-1)
    nll = -logp.gather(1, target[keep].unsqueeze(1)).squeeze(1)
    return nll.sum() / keep.sum().clamp(min=1)
