import torch
import torch.nn.functional as F


class Loss(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return F.cross_entropy(logits, target)

    @staticmethod
    def backward(ctx, grad):
        logits, target = ctx.saved_tensors
        p = torch.softmax(logits, -1)
        return grad * (p - F.one_hot(target, logits.shape[1])), None


def loss(logits, target):
    return Loss.apply(logits, target)
