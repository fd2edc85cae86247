def loss(logits, target):
    e = logits.exp()
    return -(e.gather(1, target[:, None]) / e.sum(1, keepdim=True)).log().mean()
