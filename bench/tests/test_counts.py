import pytest
import torch

from veriformer.bench.counts import FLOPS, PEAK, RECTANGULAR, Case, Series, block_size, causal
from veriformer.bench.metered_costs import NotCountable
from veriformer.bench.polynomials import Axis, Grid
from veriformer.bench.predicted_costs import AS_PRINTED, IN_BLOCKS
from veriformer.bench.targets import Target, find
from veriformer.bench.verdicts import Verdict

LENGTHS = Case(
    "small",
    Grid((Axis("B", (1, 2), 3), Axis("n_q", (3, 5, 6), 9), Axis("n_k", (4, 5), 7), Axis("d_k", (2, 3), 5))),
    letters={"H": 4, "G": 2, "d_v": 3},
)
SQUARE = Case(
    "square",
    Grid((Axis("H", (1, 2), 3), Axis("n", (128, 192, 256), 512))),
    letters={"B": 1, "G": "H", "n_q": "n", "n_k": "n", "d_k": 4, "d_v": 4},
    fixed={"w": 4},
)


def target(function, costs=AS_PRINTED):
    return Target("mine", function, costs, skips_blocks=costs is IN_BLOCKS)


@pytest.mark.whole
@pytest.mark.parametrize("backward", [False, True])
def test_equal_polynomials_are_confirmed(backward, attention):
    found = Series(target(attention), LENGTHS, FLOPS, backward).count()
    assert found.verdict is Verdict.CONFIRMED
    assert found.points == 2**4 + 4 + 5  # the grid, far along each line, and off the grid
    assert found.measured.text == found.claim.text == f"{24 if backward else 8}*B*n_k*n_q*(d_k + 3)"
    assert found.fixed == {"H": 4, "G": 2, "d_v": 3}


def test_one_product_too_many_is_refuted_with_the_smallest_witness(attention):
    found = Series(
        target(lambda q, k, v: attention(q, k, v) + 0 * (q @ q.mT) @ q[..., :1]), LENGTHS, FLOPS, False
    ).count()
    assert found.verdict is Verdict.REFUTED
    assert found.witness.point == {"B": 1, "n_q": 3, "n_k": 4, "d_k": 2}
    assert found.witness.claimed == 8 * 12 * 5
    assert found.witness.counted == found.witness.claimed + 2 * 4 * 9 * 3
    assert found.measured is not None


def test_what_is_equal_on_the_grid_alone_is_refuted_off_it(attention):
    def cheats(q, k, v):
        return attention(q, k, v) + (0 if q.shape[2] < 9 else (q @ q.mT).sum())

    found = Series(target(cheats), LENGTHS, FLOPS, False).count()
    assert (found.verdict, found.measured) == (Verdict.REFUTED, None)
    assert found.witness.point["n_q"] == 9


def test_the_peak_of_the_formula_as_printed_is_quadratic(attention):
    found = Series(target(attention), SQUARE, PEAK, False).count()
    assert (found.verdict, found.claim.kind, found.claim.degree) == (Verdict.CONFIRMED, "growth", 2)


def test_a_quadratic_peak_refutes_a_linear_claim(attention):
    found = Series(target(attention, IN_BLOCKS), SQUARE, PEAK, False).count()
    assert (found.verdict, found.claim.degree) == (Verdict.REFUTED, 1)
    assert found.reason == "of degree 2 in n, where degree 1 is predicted"


def test_a_peak_that_is_no_polynomial_is_inconclusive(attention):
    def steps(q, k, v):
        return attention(q, k, v) + q.new_empty(2 ** (q.shape[2] // 16)).sum()

    found = Series(target(steps), SQUARE, PEAK, False).count()
    assert (found.verdict, found.measured) == (Verdict.INCONCLUSIVE, None)
    assert "off the grid" in found.reason


@pytest.mark.whole
@pytest.mark.parametrize("block", [64, 128])
def test_blocks_that_a_causal_mask_hides_cost_nothing(block, blockwise):
    assert block_size(blockwise(block)) == block
    found = Series(target(blockwise(block), IN_BLOCKS), causal(block), FLOPS, False).count()
    assert found.verdict is Verdict.CONFIRMED
    assert found.measured.text == f"B*H*n*(d_k + d_v)*(n + {block})"


@pytest.mark.whole
def test_another_block_size_is_refuted(blockwise):
    assert Series(target(blockwise(64), IN_BLOCKS), causal(128), FLOPS, False).count().verdict is Verdict.REFUTED


def test_there_is_no_block_size_where_nothing_is_skipped_by_blocks(attention):
    with pytest.raises(NotCountable, match="square blocks"):
        block_size(lambda q, k, v, **options: attention(q, k, v) + (q[:, :, :7] @ k.mT).sum())


def test_what_cannot_be_counted_is_never_zero():
    def product(q, k, v):
        torch._int_mm(q.new_empty(32, 16, dtype=torch.int8), q.new_empty(16, 8, dtype=torch.int8))
        return q

    found = Series(target(product), SQUARE, FLOPS, False).count()
    assert (found.verdict, found.measured, found.points) == (Verdict.NOT_COUNTABLE, None, 0)
    assert "_int_mm" in found.reason


def test_what_is_modelled_is_said():
    sdpa = target(lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v))
    found = Series(sdpa, SQUARE, FLOPS, False).count()
    assert found.verdict is Verdict.CONFIRMED
    assert found.modelled == ["_scaled_dot_product_flash_attention_for_cpu"]


def test_an_attention_of_several_kernels_is_not_refuted():
    """PyTorch's fused kernel takes heads of one width; of others it computes by products."""
    found = Series(find("impl:sdpa"), RECTANGULAR, FLOPS, True).count()
    assert found.verdict is Verdict.NOT_COUNTABLE
    assert "by products at others" in str(found.reason)
