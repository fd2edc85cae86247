"""Requirements of unigram segmentation (documents 000 and 001, section 11.3)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.form(
        "unigram_segment",
        "The result is a list of strings, none of them empty; of the empty text it is empty.",
    ),
    templates.law(
        "unigram_segment",
        "equation",
        "The total log-probability of the pieces is the highest of all ways to cut the text.",
        "The same exactly, against every way, for log-probabilities whose sums are exact in fp64.",
        "a cut that is not the best",
        weight=Weight.WRONG,
    ),
    templates.law(
        "unigram_segment",
        "joins",
        "The pieces join to the text, code point by code point, and each of them is possible.",
        "The same exactly.",
        "lost characters",
        weight=Weight.WRONG,
    ),
    templates.law(
        "unigram_segment",
        "concatenation",
        "The best cut of two texts in a row is at least as good as their best cuts together, and no better where no "
        "piece reaches across.",
        "The same exactly, for log-probabilities whose sums are exact in fp64.",
        "a cut that is best only in parts",
        weight=Weight.WRONG,
    ),
    templates.law(
        "unigram_segment",
        "vocabulary",
        "Another piece never lowers the total, and one that is forbidden changes nothing.",
        "The same exactly, for log-probabilities whose sums are exact in fp64.",
        "a cut that is best only in parts",
        weight=Weight.WRONG,
    ),
    templates.law(
        "unigram_segment",
        "range",
        "The formula has a value for texts of any length.",
        "For texts of hundreds of characters, whose probability no format holds, and pieces of dozens, the total is "
        "the best.",
        "probabilities that underflow",
        kind=Kind.NUMERICS,
        weight=Weight.FRAGILE,
    ),
    templates.contract_case(
        "unigram_segment",
        "purity",
        "The table of log-probabilities is not modified.",
        "modified argument",
        weight=Weight.WRONG,
    ),
    *templates.refusals(
        "unigram_segment",
        r"A text that no pieces join to, also because $-\infty$ forbids one, a missing text and a missing table are "
        "refused.",
    ),
)
