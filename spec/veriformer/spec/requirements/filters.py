"""Requirements of what chooses tokens: top-k, top-p and greedy (document 003, section 12)."""

from veriformer.spec.requirement import Requirement, Weight
from veriformer.spec.requirements import templates

_TIED = ("https://github.com/vllm-project/vllm/pull/50979",)
_CROSSING = ("https://github.com/Biohub/esm/pull/360",)
_EMPTY = ("https://github.com/ml-explore/mlx-lm/pull/1912",)
_LAST = ("https://github.com/ohdearquant/lattice/pull/386",)


def _untouched(operation: str) -> Requirement:
    return templates.law(
        operation,
        "untouched",
        r"A score that is kept is the score that was given, and one that is not kept is $-\infty$.",
        "The same bit for bit.",
        "scores that are changed",
        weight=Weight.WRONG,
    )


def _order_only(operation: str, statement: str) -> Requirement:
    return templates.law(
        operation,
        "permutation",
        statement,
        "The same; nothing is judged where scores tie.",
        "dependence on the place of a token",
        weight=Weight.WRONG,
    )


TOP_K_FILTER = (
    templates.contract("top_k_filter"),
    templates.equation(
        "top_k_filter",
        (),
        r"The $k$ largest scores of the last axis stay, however near the next, ties to the lower index; the others "
        r"become $-\infty$.",
        _TIED,
    ),
    templates.purity("top_k_filter"),
    templates.layout("top_k_filter"),
    *templates.refusals(
        "top_k_filter", "A missing tensor, an empty last axis, and a $k$ below 1, a bool or missing are refused."
    ),
    templates.batch("top_k_filter", "Rows are independent: each can be filtered alone."),
    templates.sensitivity("top_k_filter"),
    templates.numpy_numbers("top_k_filter"),
    templates.long("top_k_filter"),
    _untouched("top_k_filter"),
    templates.law(
        "top_k_filter",
        "count",
        "Exactly $k$ scores survive, whatever ties; no score that is dropped exceeds one that is kept.",
        "The same exactly.",
        "more or fewer than k",
        precedents=_TIED,
        weight=Weight.WRONG,
    ),
    templates.law(
        "top_k_filter",
        "nested",
        "What $k$ keeps, $k + 1$ keeps too; filtering twice is filtering by the smaller $k$.",
        "The same exactly.",
        "sets that are not nested",
        weight=Weight.WRONG,
    ),
    templates.law(
        "top_k_filter",
        "monotone",
        "The kept set depends on the order of the scores alone: doubling and shifting them keeps it.",
        "The same exactly, for scores on which both are exact.",
        "dependence on the values of scores",
        weight=Weight.WRONG,
    ),
    _order_only("top_k_filter", "Without ties tokens that change places are kept or dropped as before."),
)

TOP_P_FILTER = (
    templates.contract("top_p_filter"),
    templates.equation(
        "top_p_filter",
        (),
        "The smallest set of most probable tokens whose mass reaches $p$ stays, ties to the lower index, always one.",
        (*_CROSSING, *_EMPTY),
    ),
    templates.purity("top_p_filter"),
    templates.layout("top_p_filter"),
    *templates.refusals(
        "top_p_filter",
        "A missing tensor, an empty last axis, and a $p$ outside $[0, 1]$, NaN, a bool or missing are refused.",
    ),
    templates.batch("top_p_filter", "Rows are independent: each can be filtered alone."),
    templates.sensitivity("top_p_filter"),
    templates.numpy_numbers("top_p_filter"),
    _untouched("top_p_filter"),
    templates.law(
        "top_p_filter",
        "nucleus",
        "Of all subsets of the tokens none that is smaller reaches $p$, and the kept one does.",
        "For up to 6 tokens, against every subset; what meets $p$ within the bound on its mass may go either way.",
        "the token that crosses the threshold",
        precedents=_CROSSING,
        weight=Weight.WRONG,
    ),
    templates.law(
        "top_p_filter",
        "never_empty",
        "However small $p$ is, the most probable token stays, and at $p = 0$ it alone.",
        "The same exactly, down to the smallest number of fp64.",
        "nothing left to sample",
        precedents=_EMPTY,
        weight=Weight.FRAGILE,
    ),
    templates.contract_case(
        "top_p_filter",
        "all",
        "At $p = 1$ every token stays, also one whose probability underflows.",
        "tokens lost at p = 1",
        weight=Weight.FRAGILE,
    ),
    templates.law(
        "top_p_filter",
        "ties",
        "Of equal scores those of lower index stay, as many as $p$ needs.",
        "For $n$ equal scores, up to 128, and $p$ midway between two multiples of $1/n$: the first $m$ exactly.",
        "a cut by value that takes all ties",
        precedents=_TIED,
        weight=Weight.WRONG,
    ),
    templates.law(
        "top_p_filter",
        "nested",
        "A larger $p$ keeps what a smaller one keeps.",
        "The same exactly.",
        "sets that are not nested",
        weight=Weight.WRONG,
    ),
    templates.law(
        "top_p_filter",
        "shift",
        "A number added to every score of a row keeps the set.",
        "The same for exact shifts, unless a mass meets $p$ within its bound.",
        "dependence on an offset",
        weight=Weight.WRONG,
    ),
    _order_only("top_p_filter", "Without ties tokens that change places are kept or dropped as before."),
)

GREEDY = (
    templates.contract("greedy"),
    templates.equation(
        "greedy",
        (),
        r"$\arg\max_i z_i$ over the last axis, however near the next is; ties to the lower index.",
        _LAST,
    ),
    templates.purity("greedy"),
    templates.layout("greedy"),
    *templates.refusals("greedy", "A missing tensor and an empty last axis are refused."),
    templates.batch("greedy", "Rows are independent: each can be decoded alone."),
    templates.sensitivity("greedy"),
    templates.long("greedy"),
    templates.law(
        "greedy",
        "first",
        "Of equally high scores the first is chosen, also where all are equal, or all but one are $-\\infty$.",
        "The same exactly.",
        "choice at ties",
        precedents=_LAST,
        weight=Weight.WRONG,
    ),
    templates.law(
        "greedy",
        "monotone",
        "The choice depends on the order of the scores alone: doubling and shifting them keeps it.",
        "The same exactly, for scores on which both are exact.",
        "dependence on the values of scores",
        weight=Weight.WRONG,
    ),
    templates.law(
        "greedy",
        "permutation",
        "Without ties the choice moves with the token.",
        "The same exactly.",
        "dependence on the place of a token",
        weight=Weight.WRONG,
    ),
)

REQUIREMENTS = (*TOP_K_FILTER, *TOP_P_FILTER, *GREEDY)
