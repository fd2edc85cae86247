"""Requirements of byte-pair encoding and unigram segmentation."""

from veriformer.spec.requirements.templates import CASE, EXACT, numerics, of, wrong

bpe_train = of("bpe_train")
bpe_encode = of("bpe_encode")

_RUNS = "https://github.com/google/sentencepiece/issues/318"
_RANK = ("https://github.com/ztxz16/fastllm/pull/715", "https://github.com/rasbt/LLMs-from-scratch/issues/558")

# Document 003, section 5.
BPE_TRAIN = bpe_train.standard(
    "contract",
    contract="The result is a list of at most `num_merges` pairs of byte strings, none of them empty.",
    equation=wrong(
        "Each merge joins the most frequent pair of neighbours, in the order of learning.",
        "The same exactly, on texts without ties and runs of a piece.",
        "wrong merges",
    ),
    most_frequent=wrong(
        "Each merge is a most frequent pair of the texts as merged so far, overlapping pairs counted; learning goes on "
        "while a pair occurs twice and stops where none is left.",
        "The same exactly, on any texts.",
        "pairs that are counted wrongly",
        _RUNS,
    ),
    order=wrong(
        "The order of the texts does not matter, nor that each is given twice.",
        "The same exactly, on texts without ties and runs of a piece.",
        "pairs that span texts",
    ),
    prefix=wrong(
        "Learning fewer merges learns the first of them.",
        "The same exactly, on texts without ties and runs of a piece.",
        "dependence on the number of merges",
    ),
    renaming=wrong(
        "Bytes are names: renaming letters renames the merges.",
        "The same exactly, on texts without ties and runs of a piece.",
        "a letter that is treated apart",
    ),
    nothing=CASE.fragile(
        "No texts, empty texts, texts of one byte, and no merges give no merges.", "learning from nothing"
    ),
    purity=CASE.wrong("The list of texts is not modified.", "modified argument"),
) + bpe_train.standard(
    "numpy_numbers refusals",
    refusals="Missing texts, texts that are no strings, and a number of merges that is negative, a bool or missing "
    "are refused.",
)

BPE_ENCODE = bpe_encode.standard(
    "contract",
    contract="The result is a list of byte strings, none of them empty; of the empty text it is empty.",
    equation=wrong(
        "While any merge applies, the one learned first is made everywhere, left to right.",
        "The same exactly, on merges that training produces.",
        "wrong pieces",
        *_RANK,
    ),
    lossless=EXACT.wrong("The pieces join to the UTF-8 bytes of the text.", "lost bytes"),
    in_turn=EXACT.wrong(
        "On merges that training produced, no two of which make the same piece, encoding is making every merge in "
        "turn, each once: what a merge makes, only later ones join.",
        "merges out of order",
        *_RANK,
    ),
    exhausted=EXACT.wrong(
        "No pair that was learned stands next to each other in the result, and every piece is a byte or was learned.",
        "merges left undone",
    ),
    runs=EXACT.wrong(
        "In a run of one letter the merges are made from the left, without overlap.", "overlapping merges", _RUNS
    ),
    duplicates=CASE.fragile("A pair that is listed twice keeps its first rank.", "rank of a pair that comes twice"),
    purity=CASE.wrong("The list of merges is not modified.", "modified argument"),
) + bpe_encode.standard("refusals", refusals="A missing text and missing merges are refused.")

unigram_segment = of("unigram_segment")

# Documents 000 and 001, section 11.3.
UNIGRAM_SEGMENT = unigram_segment.standard(
    "contract",
    contract="The result is a list of strings, none of them empty; of the empty text it is empty.",
    equation=wrong(
        "The total log-probability of the pieces is the highest of all ways to cut the text.",
        "The same exactly, against every way, for log-probabilities whose sums are exact in fp64.",
        "a cut that is not the best",
    ),
    joins=EXACT.wrong(
        "The pieces join to the text, code point by code point, and each of them is possible.", "lost characters"
    ),
    concatenation=wrong(
        "The best cut of two texts in a row is at least as good as their best cuts together, and no better where no "
        "piece reaches across.",
        "The same exactly, for log-probabilities whose sums are exact in fp64.",
        "a cut that is best only in parts",
    ),
    vocabulary=wrong(
        "Another piece never lowers the total, and one that is forbidden changes nothing.",
        "The same exactly, for log-probabilities whose sums are exact in fp64.",
        "a cut that is best only in parts",
    ),
    range=numerics(
        "The formula has a value for texts of any length.",
        "For texts of hundreds of characters, whose probability no format holds, and pieces of dozens, the total is "
        "the best.",
        "probabilities that underflow",
    ),
    purity=CASE.wrong("The table of log-probabilities is not modified.", "modified argument"),
) + unigram_segment.standard(
    "refusals",
    refusals=r"A text that no pieces join to, also because $-\infty$ forbids one, a missing text and a missing table "
    "are refused.",
)

REQUIREMENTS = (*BPE_TRAIN, *BPE_ENCODE, *UNIGRAM_SEGMENT)
