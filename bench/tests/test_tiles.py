"""Search for the fastest tiles, with rates of its own instead of a GPU's."""

import torch

from veriformer.bench.gpu_attention import climb, launched, neighbours
from veriformer.impl.attention_backends.flash.launch import Blocks, Launch, launch


def rate(blocks):
    """Return a rate that is largest at 128 x 32 with 8 warps and 3 stages, and 0 where nothing would fit."""
    if blocks.rows * blocks.cols * blocks.stages > 128 * 64 * 3:
        return 0.0
    wished = Blocks(128, 32, 8, 3)
    return 100.0 - sum(abs(getattr(blocks, x) - getattr(wished, x)) for x in ("rows", "cols", "warps", "stages"))


def test_the_fastest_tiles_are_found_one_step_at_a_time():
    best, rates = climb(Blocks(32, 64, 4, 1), rate)
    assert best == Blocks(128, 32, 8, 3)
    assert rates[best] == 100.0
    assert len(rates) < 40


def test_tiles_that_nothing_beats_stay():
    best, rates = climb(Blocks(64, 64, 4, 2), lambda blocks: float(blocks == Blocks(64, 64, 4, 2)))
    assert (best, len(rates)) == (Blocks(64, 64, 4, 2), 1 + len(list(neighbours(best))))


def test_kernels_are_launched_in_given_tiles():
    before, given = launch(128, torch.bfloat16, False, 232_448), Launch.square(16)
    with launched(given):
        assert launch(128, torch.bfloat16, False, 232_448) == given
    assert launch(128, torch.bfloat16, False, 232_448) == before
