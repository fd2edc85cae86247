"""Requirements of whole models: decoders, encoders, and encoders with a decoder.

Nothing is known of a model but its call. What is demanded are laws between calls; two ways that agree over the real
numbers may differ by a measured noise floor.
"""

from __future__ import annotations

from functools import partial

from veriformer.spec.requirement import Kind, Requirement, Weight

_FLOAT = (
    "Cell by cell (the logits at one position, the gradient of one parameter) the distance of the two results is at "
    "most the spread that random errors of one roundoff in every parameter and intermediate result make in both, "
    "times a factor that right models exceed once in ten million judgements."
)
_EXACT = "The same exactly."


def _law(
    operation: str,
    name: str,
    statement: str,
    bug_class: str,
    *,
    weight: Weight,
    floating_point_statement: str = _FLOAT,
    kind: Kind = Kind.LAW,
    rests: tuple[str, ...] = ("contract",),
    precedents: tuple[str, ...] = (),
) -> Requirement:
    return Requirement(
        slug=f"{operation}.{name}",
        operation=operation,
        statement=statement,
        floating_point_statement=floating_point_statement,
        kind=kind,
        weight=weight,
        prerequisites=tuple(f"{operation}.{other}" for other in rests),
        bug_class=bug_class,
        precedents=precedents,
    )


def _contract(operation: str) -> Requirement:
    return Requirement(
        slug=f"{operation}.contract",
        operation=operation,
        statement="Called on ids [B, n], with or without a mask, the model gives finite floating-point logits "
        "[B, n, V], changes neither, and its logits depend on the ids.",
        floating_point_statement=_EXACT,
        kind=Kind.CONTRACT,
        weight=Weight.WRONG,
        bug_class="wrong form",
    )


def _calls(operation: str) -> tuple[Requirement, ...]:
    """Return the requirements on any model, between calls."""
    law = partial(_law, operation)
    return (
        _contract(operation),
        law(
            "double",
            "In double precision the model can be called too, padded on either side, and gives finite results.",
            "range narrower than the dtype's",
            floating_point_statement=_EXACT,
            kind=Kind.CONTRACT,
            weight=Weight.FRAGILE,
        ),
        law(
            "deterministic",
            "In evaluation mode equal calls give equal logits: dropout is off.",
            "randomness in evaluation",
            weight=Weight.WRONG,
        ),
        law(
            "history",
            "A call leaves no trace: longer, shorter or other calls before it change nothing.",
            "state that outlives a call",
            weight=Weight.LEAK,
        ),
        law(
            "mode",
            "A pass in training mode, forth and back, changes nothing of what evaluation mode gives after it.",
            "mode that is not switched back",
            weight=Weight.WRONG,
        ),
        law(
            "batch",
            "Each row of a batch has the logits that it has alone.",
            "mixed batch elements",
            weight=Weight.LEAK,
        ),
        law(
            "mask_of_ones",
            "A mask of ones is no mask.",
            "mask that hides real tokens",
            weight=Weight.WRONG,
        ),
        law(
            "right_padding",
            "Padding behind a text changes nothing at its tokens.",
            "padding that is seen",
            precedents=("https://github.com/huggingface/transformers/issues/36293",),
            weight=Weight.LEAK,
        ),
        law(
            "padding_content",
            "Which tokens stand where the mask is 0 changes nothing at real tokens, and what is given there is finite.",
            "padding that is seen",
            rests=("contract", "right_padding"),
            weight=Weight.LEAK,
        ),
        law(
            "left_padding",
            "Padding in front of a text changes nothing at its tokens: positions are counted from the first real one.",
            "positions that count padding",
            rests=("contract", "mask_of_ones"),
            kind=Kind.CONVENTION,
            precedents=("https://github.com/unslothai/unsloth/issues/3699",),
            weight=Weight.WRONG,
        ),
    )


def _packing(operation: str) -> Requirement:
    return _law(
        operation,
        "packing",
        "Documents packed into one row, each with its number, have the logits that each has alone.",
        "documents that see one another",
        precedents=(
            "https://github.com/huggingface/nanoVLM/pull/204",
            "https://github.com/hiyouga/LlamaFactory/pull/7318",
        ),
        weight=Weight.LEAK,
    )


def _causal(operation: str) -> tuple[Requirement, ...]:
    """Return the requirements on models that predict each token from those before it."""
    law = partial(_law, operation)
    return (
        law(
            "causality",
            "The logits at a position do not change with the tokens after it.",
            "a look ahead",
            weight=Weight.LEAK,
        ),
        law(
            "prefix",
            "The logits of a prefix are those of the whole text, cut off.",
            "a look ahead",
            weight=Weight.LEAK,
        ),
        law(
            "reach",
            "A token changes the logits at its own position; the gradient of the logits for the embeddings "
            "vanishes at every later token and at none of the tokens between the first it reaches and its own.",
            "dead input",
            floating_point_statement="The gradient at later tokens is 0 within its noise floor; that of a token "
            "within reach is not "
            "exactly 0, and the logits are not exactly equal.",
            weight=Weight.WRONG,
        ),
    )


def _cached(operation: str) -> tuple[Requirement, ...]:
    """Return the requirements on models whose calls can go on from a cache."""
    law = partial(_law, operation)
    return (
        law(
            "cache_split",
            "Wherever a text is cut in two, its second part through the cache has the logits that it has in one call.",
            "cache that loses or shifts tokens",
            rests=("contract", "prefix"),
            precedents=(
                "https://github.com/fla-org/flash-linear-attention/issues/766",
                "https://github.com/huggingface/candle/pull/899",
            ),
            weight=Weight.WRONG,
        ),
        law(
            "cache_steps",
            "Token by token through the cache, a text has the logits that it has in one call.",
            "cache that loses or shifts tokens",
            rests=("contract", "prefix"),
            weight=Weight.WRONG,
        ),
        law(
            "cache_padding",
            "The same with padding in front of some rows, the mask as long as past and new tokens together.",
            "mask or positions ignored while decoding",
            rests=("contract", "left_padding"),
            precedents=("https://github.com/unslothai/unsloth/issues/3699",),
            weight=Weight.LEAK,
        ),
        law(
            "cache_branch",
            "From a copy of a cache a text goes on as from the cache, whatever other text went on from that.",
            "cache that shares its memory",
            rests=("contract", "cache_split"),
            weight=Weight.LEAK,
        ),
        law(
            "cache_reorder",
            "After the rows of a cache are put into another order, each goes on as the row that it came from.",
            "cache that is reordered in part",
            rests=("contract", "cache_split"),
            weight=Weight.LEAK,
        ),
    )


def _trained(operation: str) -> tuple[Requirement, ...]:
    """Return the requirements on the loss, its gradient and the parameters."""
    law = partial(_law, operation)
    return (
        law(
            "saved",
            "An instance that loads the saved state gives the same logits, and tied parameters stay tied.",
            "state that is not saved, or tied weights that part",
            precedents=("https://github.com/huggingface/accelerate/pull/1204",),
            weight=Weight.WRONG,
        ),
        law(
            "slope",
            "The gradient of the loss, along any direction in the space of the parameters, is its rate of change.",
            "a path that carries no gradient",
            floating_point_statement="What the loss gains over a step agrees with the mean gradient at its ends "
            "and its middle, "
            "within the noise of both and what the gradient changes by in between.",
            kind=Kind.GRADIENT,
            precedents=("https://github.com/paiml/entrenar/issues/314",),
            weight=Weight.WRONG,
        ),
        law(
            "accumulation",
            "The gradient of the summed loss of a padded batch is the sum over its rows, each alone without padding.",
            "gradient through padding or between rows",
            rests=("contract", "right_padding"),
            weight=Weight.LEAK,
        ),
        law(
            "loss",
            "The loss that the model gives for labels is the mean, over all that are not −100, of minus the "
            "log-probability in its own logits; a model of the next token shifts them by one.",
            "loss shifted or divided wrongly",
            precedents=("https://github.com/huggingface/transformers/pull/35438",),
            weight=Weight.WRONG,
        ),
        law(
            "backends",
            "Every way of computing attention that the model offers gives the same logits, padded batches among them.",
            "one backend apart",
            weight=Weight.WRONG,
        ),
        law(
            "checkpointing",
            "With gradient checkpointing the gradient in training mode is the same, dropout drawn from equal seeds.",
            "other dropout in the recomputation",
            precedents=("https://github.com/allenai/OLMo-core/pull/828",),
            weight=Weight.WRONG,
        ),
        law(
            "half_loss",
            "In half precision the loss of every label is that of fp64 up to rounding.",
            "lost range or precision",
            floating_point_statement="It is off by at most the spread that errors of one unit in the last place "
            "of the half in every "
            "parameter and intermediate result make in fp64, times a factor that right models exceed once in ten "
            "million judgements.",
            kind=Kind.NUMERICS,
            weight=Weight.FRAGILE,
        ),
    )


def _sourced(operation: str) -> tuple[Requirement, ...]:
    """Return the requirements on the source of an encoder–decoder."""
    law = partial(_law, operation)
    return (
        law(
            "source_padding",
            "Padding around the source, on either side and of any content, changes nothing, in one call and through a "
            "cache.",
            "source padding that is seen",
            kind=Kind.CONVENTION,
            precedents=("https://github.com/huggingface/transformers/pull/8518",),
            weight=Weight.LEAK,
        ),
        law(
            "source_reach",
            "Every token of the source changes the logits at every position.",
            "dead input",
            floating_point_statement="They are not equal exactly.",
            weight=Weight.WRONG,
        ),
    )


def _generates(operation: str) -> tuple[Requirement, ...]:
    """Return the requirements on a model's own method ``generate``, against its own logits."""
    law = partial(_law, operation)
    return (
        law(
            "greedy",
            "The prompt comes first, unchanged; where chance is turned off every new token is the one of the largest "
            "logit that the model gives for the text before it.",
            "a cache or a position one token off",
            floating_point_statement="Its logit is below the largest by no more than the noise floor of the logits.",
            rests=("contract", "prefix"),
            weight=Weight.WRONG,
        ),
        law(
            "crop",
            "The same where the text is longer than the model sees: its last tokens count, as many as it does see.",
            "a crop that drops a token too many or too few",
            floating_point_statement="As for texts that are not cropped.",
            rests=("contract", "greedy"),
            weight=Weight.WRONG,
        ),
        law(
            "sampled",
            "Tokens are drawn with the probabilities that the softmax of the logits, divided by the temperature, gives "
            "to the k largest.",
            "temperature or top-k that draws otherwise",
            floating_point_statement="Of 1024 texts of one prompt (256 where each is a call of its own) none has a "
            "token outside of the k largest, and how often ranks 1 to 3 are drawn at each step is off from the mean of "
            "their probabilities by what chance exceeds once in a thousand million judgements (Hoeffding).",
            rests=("contract", "prefix"),
            weight=Weight.WRONG,
        ),
    )


CAUSAL_LM = (
    *_calls("causal_lm"),
    *_causal("causal_lm"),
    *_cached("causal_lm"),
    _packing("causal_lm"),
    *_trained("causal_lm"),
    *_generates("causal_lm"),
)
MASKED_LM = (*_calls("masked_lm"), _packing("masked_lm"), *_trained("masked_lm"))
SEQ2SEQ_LM = (
    *_calls("seq2seq_lm"),
    *_causal("seq2seq_lm"),
    *_cached("seq2seq_lm"),
    *_sourced("seq2seq_lm"),
    *_trained("seq2seq_lm"),
)

REQUIREMENTS = (*CAUSAL_LM, *MASKED_LM, *SEQ2SEQ_LM)
