def add(x, y, alpha: float = 0.5):
    return x + 0.5 * y
