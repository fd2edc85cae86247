import gc

import pytest

from veriformer.bench.metered_costs import Shape, count_peak_bytes

SHAPE = Shape(B=2, H=3, G=3, n_q=64, n_k=96, d_k=8, d_v=8)


def test_what_the_caller_holds_anyway_is_no_extra_memory():
    assert count_peak_bytes(lambda q, k, v: q.new_empty(q.shape), SHAPE, backward=False) == 0
    assert count_peak_bytes(lambda q, k, v: q, SHAPE, backward=False) == 0


def test_a_temporary_counts_once_while_it_lives():
    def one_after_the_other(q, k, v):
        for _ in range(3):
            q.new_empty(100_000).add_(1)
        return q.new_empty(q.shape)

    result = 4 * 2 * 3 * 64 * 8
    assert count_peak_bytes(one_after_the_other, SHAPE, backward=False) == 400_000 - result

    def together(q, k, v):
        kept = [q.new_empty(100_000) for _ in range(3)]
        return q.new_empty(q.shape) if kept else q

    assert count_peak_bytes(together, SHAPE, backward=False) == 3 * 400_000


def test_the_formula_as_printed_holds_scores_and_weights(attention):
    n, pairs = 96, 2 * 3 * 64 * 96
    extra = count_peak_bytes(attention, SHAPE, backward=False)
    assert extra >= 2 * 4 * pairs
    assert extra <= 2 * 4 * pairs + 4 * 2 * 3 * n * 16  # and copies of the keys and values


@pytest.mark.whole
def test_counts_do_not_depend_on_when_garbage_is_collected(attention):
    first = count_peak_bytes(attention, SHAPE, backward=True)
    gc.collect()
    assert count_peak_bytes(attention, SHAPE, backward=True) == first > 0
