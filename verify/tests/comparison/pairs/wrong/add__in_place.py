def add(x, y, alpha: float = 0.5):
    return x.detach().add_(y, alpha=alpha)
