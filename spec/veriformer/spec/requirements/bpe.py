"""Requirements of byte-pair encoding (document 003, section 5)."""

from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import templates

bpe_train = templates.of("bpe_train")
bpe_encode = templates.of("bpe_encode")

_RUNS = "https://github.com/google/sentencepiece/issues/318"
_RANK = (
    "https://github.com/ztxz16/fastllm/pull/715",
    "https://github.com/rasbt/LLMs-from-scratch/issues/558",
)

BPE_TRAIN = (
    bpe_train.form("The result is a list of at most `num_merges` pairs of byte strings, none of them empty."),
    bpe_train.wrong(
        "equation",
        "Each merge joins the most frequent pair of neighbours, in the order of learning.",
        "The same exactly, on texts without ties and runs of a piece.",
        "wrong merges",
    ),
    bpe_train.wrong(
        "most_frequent",
        "Each merge is a most frequent pair of the texts as merged so far, overlapping pairs counted; learning goes on "
        "while a pair occurs twice and stops where none is left.",
        "The same exactly, on any texts.",
        "pairs that are counted wrongly",
        _RUNS,
    ),
    bpe_train.wrong(
        "order",
        "The order of the texts does not matter, nor that each is given twice.",
        "The same exactly, on texts without ties and runs of a piece.",
        "pairs that span texts",
    ),
    bpe_train.wrong(
        "prefix",
        "Learning fewer merges learns the first of them.",
        "The same exactly, on texts without ties and runs of a piece.",
        "dependence on the number of merges",
    ),
    bpe_train.wrong(
        "renaming",
        "Bytes are names: renaming letters renames the merges.",
        "The same exactly, on texts without ties and runs of a piece.",
        "a letter that is treated apart",
    ),
    bpe_train.contract_case(
        "nothing",
        "No texts, empty texts, texts of one byte, and no merges give no merges.",
        "learning from nothing",
        weight=Weight.FRAGILE,
    ),
    bpe_train.contract_case("purity", "The list of texts is not modified.", "modified argument", weight=Weight.WRONG),
    *bpe_train.standard(
        "numpy_numbers refusals",
        refusals="Missing texts, texts that are no strings, and a number of merges that is negative, a bool or missing "
        "are refused.",
    ),
)

BPE_ENCODE = (
    bpe_encode.form("The result is a list of byte strings, none of them empty; of the empty text it is empty."),
    bpe_encode.wrong(
        "equation",
        "While any merge applies, the one learned first is made everywhere, left to right.",
        "The same exactly, on merges that training produces.",
        "wrong pieces",
        *_RANK,
    ),
    bpe_encode.wrong("lossless", "The pieces join to the UTF-8 bytes of the text.", "The same exactly.", "lost bytes"),
    bpe_encode.wrong(
        "in_turn",
        "On merges that training produced, no two of which make the same piece, encoding is making every merge in "
        "turn, each once: what a merge makes, only later ones join.",
        "The same exactly.",
        "merges out of order",
        *_RANK,
    ),
    bpe_encode.wrong(
        "exhausted",
        "No pair that was learned stands next to each other in the result, and every piece is a byte or was learned.",
        "The same exactly.",
        "merges left undone",
    ),
    bpe_encode.wrong(
        "runs",
        "In a run of one letter the merges are made from the left, without overlap.",
        "The same exactly.",
        "overlapping merges",
        _RUNS,
    ),
    bpe_encode.contract_case(
        "duplicates",
        "A pair that is listed twice keeps its first rank.",
        "rank of a pair that comes twice",
        weight=Weight.FRAGILE,
    ),
    bpe_encode.contract_case("purity", "The list of merges is not modified.", "modified argument", weight=Weight.WRONG),
    *bpe_encode.refusals("A missing text and missing merges are refused."),
)

REQUIREMENTS = (*BPE_TRAIN, *BPE_ENCODE)
