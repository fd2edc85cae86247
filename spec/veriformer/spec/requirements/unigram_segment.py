"""Requirements of unigram segmentation (documents 000 and 001, section 11.3)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

unigram_segment = templates.of("unigram_segment")

REQUIREMENTS = (
    unigram_segment.form("The result is a list of strings, none of them empty; of the empty text it is empty."),
    unigram_segment.wrong(
        "equation",
        "The total log-probability of the pieces is the highest of all ways to cut the text.",
        "The same exactly, against every way, for log-probabilities whose sums are exact in fp64.",
        "a cut that is not the best",
    ),
    unigram_segment.wrong(
        "joins",
        "The pieces join to the text, code point by code point, and each of them is possible.",
        "The same exactly.",
        "lost characters",
    ),
    unigram_segment.wrong(
        "concatenation",
        "The best cut of two texts in a row is at least as good as their best cuts together, and no better where no "
        "piece reaches across.",
        "The same exactly, for log-probabilities whose sums are exact in fp64.",
        "a cut that is best only in parts",
    ),
    unigram_segment.wrong(
        "vocabulary",
        "Another piece never lowers the total, and one that is forbidden changes nothing.",
        "The same exactly, for log-probabilities whose sums are exact in fp64.",
        "a cut that is best only in parts",
    ),
    unigram_segment.numerics(
        "range",
        "The formula has a value for texts of any length.",
        "For texts of hundreds of characters, whose probability no format holds, and pieces of dozens, the total is "
        "the best.",
        "probabilities that underflow",
    ),
    unigram_segment.contract_case(
        "purity", "The table of log-probabilities is not modified.", "modified argument", weight=Weight.WRONG
    ),
    *unigram_segment.refusals(
        r"A text that no pieces join to, also because $-\infty$ forbids one, a missing text and a missing table are "
        "refused."
    ),
)
