"""Requirements of ALiBi's slopes and biases (document 002, section 6.3)."""

from veriformer.spec.requirements import templates

alibi_slopes = templates.of("alibi_slopes")
alibi_bias = templates.of("alibi_bias")

_SLOPES = "https://github.com/ml-explore/mlx/pull/3071"

ALIBI_SLOPES = (
    *alibi_slopes.standard(
        "contract result_dtype equation refusals numpy_numbers",
        equation=(
            r"$m_h = 2^{-8h/H}$ for $h = 1 \dots H$ where $H$ is a power of two; else the slopes of the power below, "
            "then every other one, from the first on, of the power above.",
            _SLOPES,
        ),
        refusals="A negative number of heads, and what is no integer, are refused.",
    ),
    alibi_slopes.wrong(
        "geometric",
        r"For powers of two each slope is the first times the one before, and the last is $\frac{1}{256}$.",
        "The same within what the bounds on the slopes leave to their products.",
        "slopes not geometric",
    ),
    alibi_slopes.wrong(
        "any_heads",
        "For other numbers of heads the first slopes are those of the power of two below, and the others lie halfway "
        "between: they are slopes of the power of two above.",
        "The same within the sum of both bounds.",
        "one sequence for all numbers of heads",
        _SLOPES,
    ),
)

ALIBI_BIAS = (
    *alibi_bias.standard(
        "contract result_dtype equation refusals numpy_numbers long",
        equation=("$B_{hij} = -m_h |i + n_k - n_q - j|$: the last query stands at the last key.", _SLOPES),
        refusals="Negative sizes, and what is no integer, are refused.",
    ),
    alibi_bias.wrong(
        "last_query",
        "A query's bias does not depend on how many queries stand before it: a token that is decoded alone sees what "
        "it saw among others.",
        "The same within the sum of both bounds.",
        "bias of the wrong position",
        "https://github.com/keras-team/keras-hub/pull/2977",
    ),
    alibi_bias.wrong(
        "distance",
        "The bias is zero where query and key stand together, and falls along a straight line on both sides: by the "
        "head's slope for each step away.",
        "Zero exactly; second differences within what the bounds on the entries leave to them.",
        "bias not linear in distance",
    ),
)

REQUIREMENTS = (*ALIBI_SLOPES, *ALIBI_BIAS)
