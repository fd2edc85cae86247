import torch


def recurrence(decay, drive):
    """h_t = sigmoid(decay_t) h_(t-1) + drive_t; both: [batch, length, width]."""
    h = torch.zeros_like(drive[:, 0])
    states = []
    for t in range(drive.shape[1]):
        h = torch.sigmoid(decay[:, t]) * h + drive[:, t]
        states.append(h)
    return torch.stack(states, 1)


def get_inputs():
    return [torch.randn(3, 21, 5), torch.randn(3, 21, 5)]
