def logsumexp(x):
    top = x.detach().amax(-1, keepdim=True)
    return (x - top).exp().sum(-1).log() + top.squeeze(-1)
