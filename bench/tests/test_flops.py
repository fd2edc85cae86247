import pytest
import torch

from veriformer.bench.metered_costs import NotCountable, Shape, count_flops, modelled

SHAPE = Shape(B=2, H=6, G=3, n_q=5, n_k=7, d_k=11, d_v=13)
PAIRS = 2 * 6 * 5 * 7


def of(product):
    """FLOPs of one product of the queries, whatever becomes of it."""
    return count_flops(lambda q, k, v: product(q, k, v), SHAPE, backward=False)


def test_the_formula_as_printed_costs_what_it_should(attention):
    assert count_flops(attention, SHAPE, backward=False) == 2 * PAIRS * (11 + 13)
    assert count_flops(attention, SHAPE, backward=True) == 6 * PAIRS * (11 + 13)


@pytest.mark.parametrize(
    ("product", "flops"),
    [
        (lambda a, b: a.new_empty(3, 4).addmm_(a[0], b[0]), 2 * 3 * 5 * 4),
        (lambda a, b: a.new_empty(2, 3, 4).baddbmm_(a, b), 2 * 2 * 3 * 5 * 4),
        (lambda a, b: a.new_empty(3, 4).addbmm(a, b), 2 * 2 * 3 * 5 * 4),
        (lambda a, b: a.new_empty(3, 4).addbmm_(a, b), 2 * 2 * 3 * 5 * 4),
        (lambda a, b: a.new_empty(3).addmv_(a[0], b[0, :, 0]), 2 * 3 * 5),
        (lambda a, b: torch.addmv(a.new_empty(3), a[0], b[0, :, 0]), 2 * 3 * 5),
        (lambda a, b: a[0] @ b[0, :, 0], 2 * 3 * 5),
        (lambda a, b: a[0, 0] @ b[0, :, 0], 2 * 5),
        (lambda a, b: torch.bmm(a, b, out=a.new_empty(2, 3, 4)), 2 * 2 * 3 * 5 * 4),
    ],
)
def test_products_that_accumulate_or_write_in_place_are_not_free(product, flops):
    assert of(lambda q, k, v: product(q.new_empty(2, 3, 5), q.new_empty(2, 5, 4))) == flops


def test_a_fused_kernel_is_modelled_by_its_formula_and_said_to_be():
    """Five products in the backward pass: the scores once more."""
    square = Shape(B=1, H=2, G=2, n_q=4, n_k=4, d_k=8, d_v=8)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    one = 2 * 2 * 4 * 4 * 8
    assert count_flops(sdpa, square, backward=False) == 2 * one
    assert count_flops(sdpa, square, backward=True) == 7 * one
    assert modelled(sdpa, square, backward=False) == ["_scaled_dot_product_flash_attention_for_cpu"]


def test_a_fused_kernel_with_a_causal_mask_is_not_countable_rather_than_wrong():
    square = Shape(B=1, H=2, G=2, n_q=4, n_k=4, d_k=8, d_v=8, options={"is_causal": True})
    with pytest.raises(NotCountable, match="scaled_dot_product_flash_attention_for_cpu, which may leave out"):
        count_flops(torch.nn.functional.scaled_dot_product_attention, square, backward=False)


def test_a_product_without_a_formula_is_not_countable():
    with pytest.raises(NotCountable, match="_int_mm"):
        of(lambda q, k, v: torch._int_mm(q.new_empty(32, 16, dtype=torch.int8), q.new_empty(16, 8, dtype=torch.int8)))
