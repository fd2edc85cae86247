"""Mean over samples of the squared distance."""


def mse_loss(prediction, target):
    if prediction.shape != target.shape:
        raise ValueError("prediction and target must have one shape")
    return (prediction - target).square().sum(-1).mean()
