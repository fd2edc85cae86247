"""Expected calibration error, bin by bin."""

import torch


def expected_calibration_error(probs, target, *, num_bins=15):
    probs, target = probs.reshape(-1, probs.shape[-1]), target.reshape(-1)
    confidence, predicted = probs.max(-1)
    predicted = (probs == confidence[:, None]).int().argmax(-1)
    correct = (predicted == target).to(probs.dtype)
    error = probs.new_zeros(())
    for b in range(num_bins):
        inside = (confidence > b / num_bins) & (confidence <= (b + 1) / num_bins)
        if b == 0:
            inside = inside | (confidence == 0)
        if inside.any():
            gap = (correct[inside].mean() - confidence[inside].mean()).abs()
            error = error + gap / num_bins
    return error
