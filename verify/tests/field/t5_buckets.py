"""T5's buckets with the numbers of the paper, by whole numbers only."""

import torch


def t5_relative_position_bucket(relative_position):
    bucket = (relative_position > 0).long() * 16
    distance = relative_position.long().abs().clamp(max=128)
    far = 8 + sum((distance**2 >= 64 * 2**step).long() for step in range(1, 8))
    return bucket + torch.where(distance < 8, distance, far)
