"""Requirements of linear attention (equation 45)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

linear_attention = templates.of("linear_attention", "45")

_ELEMENTWISE = "https://github.com/lucidrains/performer-pytorch/issues/21"
_SEVERED = "https://github.com/fla-org/flash-linear-attention/pull/875"


REQUIREMENTS = (
    *linear_attention.standard(
        "contract equation gradient purity layout refusals batch sensitivity",
        equation=(
            r"$\varphi(Q)(\varphi(K)^\top V) / \varphi(Q)(\varphi(K)^\top \mathbf 1)$ over the keys that a query sees, "
            r"with $\varphi(x) = \mathrm{elu}(x) + 1$ and one scalar in the denominator of each query.",
            _ELEMENTWISE,
        ),
        gradient=(
            r"$\bar V = P^\top g$, $\bar A = (g V^\top - \mathrm{rowsum}(g \odot O)) / D$ where visible, "
            r"$\bar Q = \bar A \varphi(K) \odot \varphi'(Q)$, $\bar K = \bar A^\top \varphi(Q) \odot \varphi'(K)$: "
            "through numerator and normaliser.",
            _SEVERED,
        ),
        refusals="Wrong ranks, dtypes that differ, sizes that do not match, grouped heads and unknown feature maps are "
        "refused.",
        batch="Batch elements and heads are independent: each can be computed alone.",
    ),
    linear_attention.agreement(
        "prefix",
        "The causal form at a position is the other form of that query over the keys up to it: parallel, chunked and "
        "recurrent forms agree.",
        "state off by one",
        _ELEMENTWISE,
        weight=Weight.WRONG,
    ),
    linear_attention.agreement(
        "causality",
        "Under causality the output at a position depends on no later key or value, and on every earlier one.",
        "what lies ahead leaks",
        weight=Weight.LEAK,
    ),
    linear_attention.agreement(
        "keys_permuted",
        "Keys and values in another order give the same; queries in another order give that order.",
        "dependence on position",
        weight=Weight.WRONG,
    ),
    linear_attention.agreement(
        "convexity",
        "Each result lies between the extremes of the values that its query sees; equal values come out unchanged.",
        "weights that are not a distribution",
        _ELEMENTWISE,
        weight=Weight.WRONG,
    ),
    linear_attention.agreement(
        "linear_in_values",
        "The result is linear in $V$.",
        "not linear in the values",
        weight=Weight.WRONG,
    ),
    linear_attention.agreement(
        "duplicated_keys",
        "Every key and value given twice changes nothing: the normaliser counts them too.",
        "normaliser that does not follow the sum",
        _ELEMENTWISE,
        weight=Weight.WRONG,
    ),
    linear_attention.numerics(
        "range",
        "Features, their products and their sums over the keys may be beyond the range of a half: the mean of values "
        "is not.",
        "The result is finite and within its bound, in fp16.",
        "overflow in half precision",
    ),
    linear_attention.fragile(
        "empty_row",
        "A query that sees no key, by causality or for want of keys, gives a zero row with zero gradient.",
        "Result and gradients lie within the bound of the formula, which is 0 at such rows.",
        "0 divided by 0",
        equations=("45", "24a"),
    ),
    linear_attention.wrong(
        "chunks",
        "The formula holds for sequences longer than a chunk, and not multiples of one.",
        "Result and gradients lie within the running error bound of the formula.",
        "chunk edge",
        _SEVERED,
        kind=Kind.EQUATION,
    ),
    linear_attention.accuracy(),
)
