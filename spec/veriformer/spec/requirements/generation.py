"""Requirements of what chooses tokens: top-k, top-p, greedy and beam search (document 003, section 12)."""

from veriformer.spec.requirements.templates import BITWISE, BOUND, CASE, EXACT, fragile, of, wrong

_TIED = "https://github.com/vllm-project/vllm/pull/50979"
_CROSSING = "https://github.com/Biohub/esm/pull/360"
_EMPTY = "https://github.com/ml-explore/mlx-lm/pull/1912"
_LAST = "https://github.com/ohdearquant/lattice/pull/386"

_UNTOUCHED = BITWISE.wrong(
    r"A score that is kept is the score that was given, and one that is not kept is $-\infty$.",
    "scores that are changed",
)

_ORDER_ONLY = wrong(
    "Without ties tokens that change places are kept or dropped as before.",
    "The same; nothing is judged where scores tie.",
    "dependence on the place of a token",
)

TOP_K_FILTER = of("top_k_filter").standard(
    "contract equation purity layout refusals batch sensitivity numpy_numbers long",
    equation=(
        "The $k$ largest scores of the last axis stay, however near the next, ties to the lower index; the others "
        r"become $-\infty$.",
        _TIED,
    ),
    refusals="A missing tensor, an empty last axis, and a $k$ below 1, a bool or missing are refused.",
    batch="Rows are independent: each can be filtered alone.",
    untouched=_UNTOUCHED,
    count=EXACT.wrong(
        "Exactly $k$ scores survive, whatever ties; no score that is dropped exceeds one that is kept.",
        "more or fewer than k",
        _TIED,
    ),
    nested=EXACT.wrong(
        "What $k$ keeps, $k + 1$ keeps too; filtering twice is filtering by the smaller $k$.",
        "sets that are not nested",
    ),
    monotone=wrong(
        "The kept set depends on the order of the scores alone: doubling and shifting them keeps it.",
        "The same exactly, for scores on which both are exact.",
        "dependence on the values of scores",
    ),
    permutation=_ORDER_ONLY,
)

TOP_P_FILTER = of("top_p_filter").standard(
    "contract equation purity layout refusals batch sensitivity numpy_numbers",
    equation=(
        "The smallest set of most probable tokens whose mass reaches $p$ stays, ties to the lower index, always one.",
        _CROSSING,
        _EMPTY,
    ),
    refusals="A missing tensor, an empty last axis, and a $p$ outside $[0, 1]$, NaN, a bool or missing are refused.",
    batch="Rows are independent: each can be filtered alone.",
    untouched=_UNTOUCHED,
    nucleus=wrong(
        "Of all subsets of the tokens none that is smaller reaches $p$, and the kept one does.",
        "For up to 6 tokens, against every subset; what meets $p$ within the bound on its mass may go either way.",
        "the token that crosses the threshold",
        _CROSSING,
    ),
    never_empty=fragile(
        "However small $p$ is, the most probable token stays, and at $p = 0$ it alone.",
        "The same exactly, down to the smallest number of fp64.",
        "nothing left to sample",
        _EMPTY,
    ),
    all=CASE.fragile("At $p = 1$ every token stays, also one whose probability underflows.", "tokens lost at p = 1"),
    ties=wrong(
        "Of equal scores those of lower index stay, as many as $p$ needs.",
        "For $n$ equal scores, up to 128, and $p$ midway between two multiples of $1/n$: the first $m$ exactly.",
        "a cut by value that takes all ties",
        _TIED,
    ),
    nested=EXACT.wrong("A larger $p$ keeps what a smaller one keeps.", "sets that are not nested"),
    shift=wrong(
        "A number added to every score of a row keeps the set.",
        "The same for exact shifts, unless a mass meets $p$ within its bound.",
        "dependence on an offset",
    ),
    permutation=_ORDER_ONLY,
)

GREEDY = of("greedy").standard(
    "contract equation purity layout refusals batch sensitivity long",
    equation=(r"$\arg\max_i z_i$ over the last axis, however near the next is; ties to the lower index.", _LAST),
    refusals="A missing tensor and an empty last axis are refused.",
    batch="Rows are independent: each can be decoded alone.",
    first=EXACT.wrong(
        "Of equally high scores the first is chosen, also where all are equal, or all but one are $-\\infty$.",
        "choice at ties",
        _LAST,
    ),
    monotone=wrong(
        "The choice depends on the order of the scores alone: doubling and shifting them keeps it.",
        "The same exactly, for scores on which both are exact.",
        "dependence on the values of scores",
    ),
    permutation=EXACT.wrong("Without ties the choice moves with the token.", "dependence on the place of a token"),
)

beam_search = of("beam_search")

_EARLY = ("https://github.com/OpenNMT/OpenNMT-py/issues/1320", "https://github.com/neulab/xnmt/pull/572")
_LENGTH = "https://github.com/awslabs/sockeye/issues/483"

BEAM_SEARCH = beam_search.standard(
    "contract",
    contract="The result is a pair of ids, 1-D integers that begin with the start and are at most `max_length` long, "
    "and a score, a number or a 0-d tensor.",
    equation=wrong(
        "A beam that holds every text finds the best of all texts, by the sum of log-probabilities over length to the "
        "penalty, the length counting generated tokens, `eos` included.",
        "The score lies within the bound of the best score of all texts, enumerated; the text is one of those that "
        "have it.",
        "search that misses the best",
        *_EARLY,
        _LENGTH,
    ),
    width_one=wrong(
        "A beam of width one without penalty is greedy decoding, of equal continuations the lower id.",
        "The ids are the same exactly; the score lies within its bound.",
        "wrong continuation",
    ),
    own_score=BOUND.wrong(
        "At any width and penalty the score is that of the text that is returned.", "score of another text", _LENGTH
    ),
    ending=EXACT.wrong(
        "At any width the text ends in `eos`, which stands nowhere else in what was generated, or is as long as "
        "allowed.",
        "text that does not end",
        *_EARLY,
    ),
    wider=wrong(
        "A beam that holds every text is not worse than a narrower one.",
        "The same, give or take both bounds.",
        "search that misses the best",
        *_EARLY,
    ),
    impossible=EXACT.wrong(
        r"A continuation at $-\infty$ is never taken, however wide the beam; the score is finite.", "impossible text"
    ),
    relabelling=wrong(
        "Ids are names: permuting those of a model permutes the text that an exhaustive beam finds, and keeps the "
        "score.",
        "The score within the sum of both bounds; the text exactly, where no other comes as near.",
        "an id that is treated apart",
    ),
    purity=CASE.wrong("The start is not modified, and a second search gives the same text.", "modified argument"),
) + beam_search.standard(
    "numpy_numbers refusals",
    refusals="A missing step or start, a start of the wrong rank, a width below 1, a negative length, bools for "
    "numbers, and a penalty that is no number are refused.",
)

REQUIREMENTS = (*TOP_K_FILTER, *TOP_P_FILTER, *GREEDY, *BEAM_SEARCH)
