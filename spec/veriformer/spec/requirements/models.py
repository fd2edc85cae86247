"""Requirements of whole models: decoders, encoders, and encoders with a decoder.

Nothing is known of a model but its call. What is demanded are laws between calls; two ways that agree over the real
numbers may differ by a measured noise floor.
"""

from veriformer.spec.requirement import Kind
from veriformer.spec.requirements.templates import CASE, Relation, of

_NOISE = Relation(
    "Cell by cell (the logits at one position, the gradient of one parameter) the distance of the two results is at "
    "most the spread that random errors of one roundoff in every parameter and intermediate result make in both, "
    "times a factor that right models exceed once in ten million judgements."
)

_CALLS = {
    "contract": CASE.wrong(
        "Called on ids [B, n], with or without a mask, the model gives finite floating-point logits "
        "[B, n, V], changes neither, and its logits depend on the ids.",
        "wrong form",
        rests=(),
    ),
    "double": CASE.fragile(
        "In double precision the model can be called too, padded on either side, and gives finite results.",
        "range narrower than the dtype's",
    ),
    "deterministic": _NOISE.wrong(
        "In evaluation mode equal calls give equal logits: dropout is off.", "randomness in evaluation"
    ),
    "history": _NOISE.leak(
        "A call leaves no trace: longer, shorter or other calls before it change nothing.", "state that outlives a call"
    ),
    "mode": _NOISE.wrong(
        "A pass in training mode, forth and back, changes nothing of what evaluation mode gives after it.",
        "mode that is not switched back",
    ),
    "batch": _NOISE.leak("Each row of a batch has the logits that it has alone.", "mixed batch elements"),
    "mask_of_ones": _NOISE.wrong("A mask of ones is no mask.", "mask that hides real tokens"),
    "right_padding": _NOISE.leak(
        "Padding behind a text changes nothing at its tokens.",
        "padding that is seen",
        "https://github.com/huggingface/transformers/issues/36293",
    ),
    "padding_content": _NOISE.leak(
        "Which tokens stand where the mask is 0 changes nothing at real tokens, and what is given there is finite.",
        "padding that is seen",
        rests=("contract", "right_padding"),
    ),
    "left_padding": _NOISE.wrong(
        "Padding in front of a text changes nothing at its tokens: positions are counted from the first real one.",
        "positions that count padding",
        "https://github.com/unslothai/unsloth/issues/3699",
        rests=("contract", "mask_of_ones"),
        kind=Kind.CONVENTION,
    ),
}
"""Laws of any model, between calls."""

_PACKING = {
    "packing": _NOISE.leak(
        "Documents packed into one row, each with its number, have the logits that each has alone.",
        "documents that see one another",
        "https://github.com/huggingface/nanoVLM/pull/204",
        "https://github.com/hiyouga/LlamaFactory/pull/7318",
    )
}

_CAUSAL = {
    "causality": _NOISE.leak("The logits at a position do not change with the tokens after it.", "a look ahead"),
    "prefix": _NOISE.leak("The logits of a prefix are those of the whole text, cut off.", "a look ahead"),
    "reach": Relation(
        "The gradient at later tokens is 0 within its noise floor; that of a token "
        "within reach is not "
        "exactly 0, and the logits are not exactly equal."
    ).wrong(
        "A token changes the logits at its own position; the gradient of the logits for the embeddings "
        "vanishes at every later token and at none of the tokens between the first it reaches and its own.",
        "dead input",
    ),
}
"""Laws of models that predict each token from those before it."""

_CACHED = {
    "cache_split": _NOISE.wrong(
        "Wherever a text is cut in two, its second part through the cache has the logits that it has in one call.",
        "cache that loses or shifts tokens",
        "https://github.com/fla-org/flash-linear-attention/issues/766",
        "https://github.com/huggingface/candle/pull/899",
        rests=("contract", "prefix"),
    ),
    "cache_steps": _NOISE.wrong(
        "Token by token through the cache, a text has the logits that it has in one call.",
        "cache that loses or shifts tokens",
        rests=("contract", "prefix"),
    ),
    "cache_padding": _NOISE.leak(
        "The same with padding in front of some rows, the mask as long as past and new tokens together.",
        "mask or positions ignored while decoding",
        "https://github.com/unslothai/unsloth/issues/3699",
        rests=("contract", "left_padding"),
    ),
    "cache_branch": _NOISE.leak(
        "From a copy of a cache a text goes on as from the cache, whatever other text went on from that.",
        "cache that shares its memory",
        rests=("contract", "cache_split"),
    ),
    "cache_reorder": _NOISE.leak(
        "After the rows of a cache are put into another order, each goes on as the row that it came from.",
        "cache that is reordered in part",
        rests=("contract", "cache_split"),
    ),
}
"""Laws of models whose calls can go on from a cache."""

_TRAINED = {
    "saved": _NOISE.wrong(
        "An instance that loads the saved state gives the same logits, and tied parameters stay tied.",
        "state that is not saved, or tied weights that part",
        "https://github.com/huggingface/accelerate/pull/1204",
    ),
    "slope": Relation(
        "What the loss gains over a step agrees with the mean gradient at its ends "
        "and its middle, "
        "within the noise of both and what the gradient changes by in between."
    ).wrong(
        "The gradient of the loss, along any direction in the space of the parameters, is its rate of change.",
        "a path that carries no gradient",
        "https://github.com/paiml/entrenar/issues/314",
        kind=Kind.GRADIENT,
    ),
    "accumulation": _NOISE.leak(
        "The gradient of the summed loss of a padded batch is the sum over its rows, each alone without padding.",
        "gradient through padding or between rows",
        rests=("contract", "right_padding"),
    ),
    "loss": _NOISE.wrong(
        "The loss that the model gives for labels is the mean, over all that are not −100, of minus the "
        "log-probability in its own logits; a model of the next token shifts them by one.",
        "loss shifted or divided wrongly",
        "https://github.com/huggingface/transformers/pull/35438",
    ),
    "backends": _NOISE.wrong(
        "Every way of computing attention that the model offers gives the same logits, padded batches among them.",
        "one backend apart",
    ),
    "checkpointing": _NOISE.wrong(
        "With gradient checkpointing the gradient in training mode is the same, dropout drawn from equal seeds.",
        "other dropout in the recomputation",
        "https://github.com/allenai/OLMo-core/pull/828",
    ),
    "half_loss": Relation(
        "It is off by at most the spread that errors of one unit in the last place "
        "of the half in every "
        "parameter and intermediate result make in fp64, times a factor that right models exceed once in ten "
        "million judgements."
    ).numerics("In half precision the loss of every label is that of fp64 up to rounding.", "lost range or precision"),
}
"""Laws of the loss, its gradient and the parameters."""

_SOURCED = {
    "source_padding": _NOISE.leak(
        "Padding around the source, on either side and of any content, changes nothing, in one call and through a "
        "cache.",
        "source padding that is seen",
        "https://github.com/huggingface/transformers/pull/8518",
        kind=Kind.CONVENTION,
    ),
    "source_reach": Relation("They are not equal exactly.").wrong(
        "Every token of the source changes the logits at every position.", "dead input"
    ),
}
"""Laws of the source of an encoder–decoder."""

_GENERATES = {
    "greedy": Relation("Its logit is below the largest by no more than the noise floor of the logits.").wrong(
        "The prompt comes first, unchanged; where chance is turned off every new token is the one of the largest "
        "logit that the model gives for the text before it.",
        "a cache or a position one token off",
        rests=("contract", "prefix"),
    ),
    "crop": Relation("As for texts that are not cropped.").wrong(
        "The same where the text is longer than the model sees: its last tokens count, as many as it does see.",
        "a crop that drops a token too many or too few",
        rests=("contract", "greedy"),
    ),
    "sampled": Relation(
        "Of 1024 texts of one prompt (256 where each is a call of its own) none has a "
        "token outside of the k largest, and how often ranks 1 to 3 are drawn at each step is off from the mean of "
        "their probabilities by what chance exceeds once in a thousand million judgements (Hoeffding)."
    ).wrong(
        "Tokens are drawn with the probabilities that the softmax of the logits, divided by the temperature, gives "
        "to the k largest.",
        "temperature or top-k that draws otherwise",
        rests=("contract", "prefix"),
    ),
}
"""Laws of a model's own method ``generate``, against its own logits."""

CAUSAL_LM = of("causal_lm").standard(**_CALLS, **_CAUSAL, **_CACHED, **_PACKING, **_TRAINED, **_GENERATES)
MASKED_LM = of("masked_lm").standard(**_CALLS, **_PACKING, **_TRAINED)
SEQ2SEQ_LM = of("seq2seq_lm").standard(**_CALLS, **_CAUSAL, **_CACHED, **_SOURCED, **_TRAINED)

REQUIREMENTS = (*CAUSAL_LM, *MASKED_LM, *SEQ2SEQ_LM)
