"""Requirements of beam search (document 003, section 12)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

beam_search = templates.of("beam_search")

_EARLY = (
    "https://github.com/OpenNMT/OpenNMT-py/issues/1320",
    "https://github.com/neulab/xnmt/pull/572",
)
_LENGTH = "https://github.com/awslabs/sockeye/issues/483"

REQUIREMENTS = (
    beam_search.form(
        "The result is a pair of ids, 1-D integers that begin with the start and are at most `max_length` long, and a "
        "score, a number or a 0-d tensor."
    ),
    beam_search.wrong(
        "equation",
        "A beam that holds every text finds the best of all texts, by the sum of log-probabilities over length to the "
        "penalty, the length counting generated tokens, `eos` included.",
        "The score lies within the bound of the best score of all texts, enumerated; the text is one of those that "
        "have it.",
        "search that misses the best",
        *_EARLY,
        _LENGTH,
    ),
    beam_search.wrong(
        "width_one",
        "A beam of width one without penalty is greedy decoding, of equal continuations the lower id.",
        "The ids are the same exactly; the score lies within its bound.",
        "wrong continuation",
    ),
    beam_search.wrong(
        "own_score",
        "At any width and penalty the score is that of the text that is returned.",
        "The same within the bound.",
        "score of another text",
        _LENGTH,
    ),
    beam_search.wrong(
        "ending",
        "At any width the text ends in `eos`, which stands nowhere else in what was generated, or is as long as "
        "allowed.",
        "The same exactly.",
        "text that does not end",
        *_EARLY,
    ),
    beam_search.wrong(
        "wider",
        "A beam that holds every text is not worse than a narrower one.",
        "The same, give or take both bounds.",
        "search that misses the best",
        *_EARLY,
    ),
    beam_search.wrong(
        "impossible",
        r"A continuation at $-\infty$ is never taken, however wide the beam; the score is finite.",
        "The same exactly.",
        "impossible text",
    ),
    beam_search.wrong(
        "relabelling",
        "Ids are names: permuting those of a model permutes the text that an exhaustive beam finds, and keeps the "
        "score.",
        "The score within the sum of both bounds; the text exactly, where no other comes as near.",
        "an id that is treated apart",
    ),
    beam_search.contract_case(
        "purity",
        "The start is not modified, and a second search gives the same text.",
        "modified argument",
        weight=Weight.WRONG,
    ),
    *beam_search.standard(
        "numpy_numbers refusals",
        refusals="A missing step or start, a start of the wrong rank, a width below 1, a negative length, bools for "
        "numbers, and a penalty that is no number are refused.",
    ),
)
