def mean(x):
    return x[: x.shape[0] - 1].mean() if x.ndim else x.mean()
