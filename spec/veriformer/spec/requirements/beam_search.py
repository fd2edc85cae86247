"""Requirements of beam search (document 003, section 12)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

_EARLY = (
    "https://github.com/OpenNMT/OpenNMT-py/issues/1320",
    "https://github.com/neulab/xnmt/pull/572",
)
_LENGTH = ("https://github.com/awslabs/sockeye/issues/483",)

REQUIREMENTS = (
    templates.form(
        "beam_search",
        "The result is a pair of ids, 1-D integers that begin with the start and are at most `max_length` long, and a "
        "score, a number or a 0-d tensor.",
    ),
    templates.law(
        "beam_search",
        "equation",
        "A beam that holds every text finds the best of all texts, by the sum of log-probabilities over length to the "
        "penalty, the length counting generated tokens, `eos` included.",
        "The score lies within the bound of the best score of all texts, enumerated; the text is one of those that "
        "have it.",
        "search that misses the best",
        precedents=(*_EARLY, *_LENGTH),
        weight=Weight.WRONG,
    ),
    templates.law(
        "beam_search",
        "width_one",
        "A beam of width one without penalty is greedy decoding, of equal continuations the lower id.",
        "The ids are the same exactly; the score lies within its bound.",
        "wrong continuation",
        weight=Weight.WRONG,
    ),
    templates.law(
        "beam_search",
        "own_score",
        "At any width and penalty the score is that of the text that is returned.",
        "The same within the bound.",
        "score of another text",
        precedents=_LENGTH,
        weight=Weight.WRONG,
    ),
    templates.law(
        "beam_search",
        "ending",
        "At any width the text ends in `eos`, which stands nowhere else in what was generated, or is as long as "
        "allowed.",
        "The same exactly.",
        "text that does not end",
        precedents=_EARLY,
        weight=Weight.WRONG,
    ),
    templates.law(
        "beam_search",
        "wider",
        "A beam that holds every text is not worse than a narrower one.",
        "The same, give or take both bounds.",
        "search that misses the best",
        precedents=_EARLY,
        weight=Weight.WRONG,
    ),
    templates.law(
        "beam_search",
        "impossible",
        r"A continuation at $-\infty$ is never taken, however wide the beam; the score is finite.",
        "The same exactly.",
        "impossible text",
        weight=Weight.WRONG,
    ),
    templates.law(
        "beam_search",
        "relabelling",
        "Ids are names: permuting those of a model permutes the text that an exhaustive beam finds, and keeps the "
        "score.",
        "The score within the sum of both bounds; the text exactly, where no other comes as near.",
        "an id that is treated apart",
        weight=Weight.WRONG,
    ),
    templates.contract_case(
        "beam_search",
        "purity",
        "The start is not modified, and a second search gives the same text.",
        "modified argument",
        weight=Weight.WRONG,
    ),
    templates.numpy_numbers("beam_search"),
    *templates.refusals(
        "beam_search",
        "A missing step or start, a start of the wrong rank, a width below 1, a negative length, bools for numbers, "
        "and a penalty that is no number are refused.",
    ),
)
