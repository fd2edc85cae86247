"""Requirements of what chooses tokens: top-k, top-p and greedy (document 003, section 12)."""

from veriformer.spec.requirement import Requirement, Weight
from veriformer.spec.requirements import templates

top_k_filter = templates.of("top_k_filter")
top_p_filter = templates.of("top_p_filter")
greedy = templates.of("greedy")

_TIED = "https://github.com/vllm-project/vllm/pull/50979"
_CROSSING = "https://github.com/Biohub/esm/pull/360"
_EMPTY = "https://github.com/ml-explore/mlx-lm/pull/1912"
_LAST = "https://github.com/ohdearquant/lattice/pull/386"


def _untouched(of: templates.Templates) -> Requirement:
    return of.wrong(
        "untouched",
        r"A score that is kept is the score that was given, and one that is not kept is $-\infty$.",
        "The same bit for bit.",
        "scores that are changed",
    )


def _order_only(of: templates.Templates, statement: str) -> Requirement:
    return of.wrong(
        "permutation",
        statement,
        "The same; nothing is judged where scores tie.",
        "dependence on the place of a token",
    )


TOP_K_FILTER = (
    *top_k_filter.standard(
        "contract equation purity layout refusals batch sensitivity numpy_numbers long",
        equation=(
            "The $k$ largest scores of the last axis stay, however near the next, ties to the lower index; the others "
            r"become $-\infty$.",
            _TIED,
        ),
        refusals="A missing tensor, an empty last axis, and a $k$ below 1, a bool or missing are refused.",
        batch="Rows are independent: each can be filtered alone.",
    ),
    _untouched(top_k_filter),
    top_k_filter.wrong(
        "count",
        "Exactly $k$ scores survive, whatever ties; no score that is dropped exceeds one that is kept.",
        "The same exactly.",
        "more or fewer than k",
        _TIED,
    ),
    top_k_filter.wrong(
        "nested",
        "What $k$ keeps, $k + 1$ keeps too; filtering twice is filtering by the smaller $k$.",
        "The same exactly.",
        "sets that are not nested",
    ),
    top_k_filter.wrong(
        "monotone",
        "The kept set depends on the order of the scores alone: doubling and shifting them keeps it.",
        "The same exactly, for scores on which both are exact.",
        "dependence on the values of scores",
    ),
    _order_only(top_k_filter, "Without ties tokens that change places are kept or dropped as before."),
)

TOP_P_FILTER = (
    *top_p_filter.standard(
        "contract equation purity layout refusals batch sensitivity numpy_numbers",
        equation=(
            "The smallest set of most probable tokens whose mass reaches $p$ stays, ties to the lower index, always "
            "one.",
            _CROSSING,
            _EMPTY,
        ),
        refusals="A missing tensor, an empty last axis, and a $p$ outside $[0, 1]$, NaN, a bool or missing are "
        "refused.",
        batch="Rows are independent: each can be filtered alone.",
    ),
    _untouched(top_p_filter),
    top_p_filter.wrong(
        "nucleus",
        "Of all subsets of the tokens none that is smaller reaches $p$, and the kept one does.",
        "For up to 6 tokens, against every subset; what meets $p$ within the bound on its mass may go either way.",
        "the token that crosses the threshold",
        _CROSSING,
    ),
    top_p_filter.fragile(
        "never_empty",
        "However small $p$ is, the most probable token stays, and at $p = 0$ it alone.",
        "The same exactly, down to the smallest number of fp64.",
        "nothing left to sample",
        _EMPTY,
    ),
    top_p_filter.contract_case(
        "all",
        "At $p = 1$ every token stays, also one whose probability underflows.",
        "tokens lost at p = 1",
        weight=Weight.FRAGILE,
    ),
    top_p_filter.wrong(
        "ties",
        "Of equal scores those of lower index stay, as many as $p$ needs.",
        "For $n$ equal scores, up to 128, and $p$ midway between two multiples of $1/n$: the first $m$ exactly.",
        "a cut by value that takes all ties",
        _TIED,
    ),
    top_p_filter.wrong(
        "nested", "A larger $p$ keeps what a smaller one keeps.", "The same exactly.", "sets that are not nested"
    ),
    top_p_filter.wrong(
        "shift",
        "A number added to every score of a row keeps the set.",
        "The same for exact shifts, unless a mass meets $p$ within its bound.",
        "dependence on an offset",
    ),
    _order_only(top_p_filter, "Without ties tokens that change places are kept or dropped as before."),
)

GREEDY = (
    *greedy.standard(
        "contract equation purity layout refusals batch sensitivity long",
        equation=(r"$\arg\max_i z_i$ over the last axis, however near the next is; ties to the lower index.", _LAST),
        refusals="A missing tensor and an empty last axis are refused.",
        batch="Rows are independent: each can be decoded alone.",
    ),
    greedy.wrong(
        "first",
        "Of equally high scores the first is chosen, also where all are equal, or all but one are $-\\infty$.",
        "The same exactly.",
        "choice at ties",
        _LAST,
    ),
    greedy.wrong(
        "monotone",
        "The choice depends on the order of the scores alone: doubling and shifting them keeps it.",
        "The same exactly, for scores on which both are exact.",
        "dependence on the values of scores",
    ),
    greedy.wrong(
        "permutation",
        "Without ties the choice moves with the token.",
        "The same exactly.",
        "dependence on the place of a token",
    ),
)

REQUIREMENTS = (*TOP_K_FILTER, *TOP_P_FILTER, *GREEDY)
