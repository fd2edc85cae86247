import torch


def segment_sum(values, segments):
    """Sums of the rows of each segment; segments: [rows] whole numbers below 8."""
    return torch.stack([values[segments == one].sum(0) for one in range(8)])


def get_inputs():
    return [torch.randn(50, 6), torch.randint(0, 8, (50,))]
