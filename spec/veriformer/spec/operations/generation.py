"""Generation and text: filters, searches and tokenizers."""

from veriformer.spec.operations.call import (
    Floats,
    Integer,
    Integers,
    Mark,
    Number,
    Operation,
    Other,
    Probability,
    Result,
)

_LOGITS = Floats("... V")

OPERATIONS = (
    Operation(
        name="top_k_filter",
        says="Logits with −∞ outside the k largest of each row; ties go to the lower index.",
        call={"logits": _LOGITS, "k": Integer(least=1)},
        result=Result("... V"),
        place="generation.top_k_filter",
    ),
    Operation(
        name="top_p_filter",
        says="Logits with −∞ outside the smallest set of tokens whose probability reaches p; one at least stays.",
        call={"logits": _LOGITS, "p": Probability()},
        result=Result("... V"),
    ),
    Operation(
        name="greedy",
        says="Index of the largest logit of each row; ties go to the lower index.",
        call={"logits": Floats("... V", constant=True)},
    ),
    Operation(
        name="beam_search",
        says="Best hypothesis found and its score, Σ log p / length ** length_penalty.",
        call={"step": Other(), "start": Integers("n")},
        options={
            "beam_width": Integer(least=1),
            "max_length": Integer(),
            "eos": Mark(),
            "length_penalty": Number(default=0.0),
        },
    ),
    Operation(
        name="bpe_train",
        says="Byte-pair merges, learned by repeatedly merging the most frequent pair.",
        call={"texts": Other(), "num_merges": Integer()},
    ),
    Operation(
        name="bpe_encode",
        says="Byte-pair encoding: a text as byte strings, the merge learned first applied first.",
        call={"text": Other(), "merges": Other()},
    ),
    Operation(
        name="unigram_segment",
        says="Segmentation of highest total log-probability (Viterbi).",
        call={"text": Other(), "log_probs": Other()},
    ),
)
