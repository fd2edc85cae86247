"""Requirements of token embeddings (equation 39)."""

from veriformer.spec.requirements import templates

token_embedding = templates.of("token_embedding", "39")

REQUIREMENTS = (
    *token_embedding.standard(
        "contract equation gradient purity layout long refusals batch sensitivity",
        equation=r"$y_t = E_{\mathrm{id}_t}$, the product of a one-hot row and $E$.",
        gradient=r"$\bar E_v = \sum_{t: \mathrm{id}_t = v} \bar y_t$: repeated tokens add up, and rows not read get "
        "zero.",
        refusals="No tensors, ids that are negative, too large or no integers, and tables that are no matrix are "
        "refused.",
        batch="Tokens are looked up one by one.",
    ),
    token_embedding.wrong(
        "lookup",
        "A lookup copies: nothing is scaled, added or rounded.",
        "The result equals the rows bit for bit, for ids of any integer dtype.",
        "changed embedding",
        "https://github.com/pytorch/tutorials/issues/2849",
    ),
    token_embedding.wrong(
        "repeated",
        "A token that occurs many times collects all its cotangents, and one that does not occur none.",
        "The sum is within its bound; the gradient of a row that was not read is zero exactly.",
        "lost repetitions",
    ),
    token_embedding.numerics(
        "range",
        "The sum over repeated tokens is finite where its value is, though its parts may not be.",
        "The gradient is finite and within its bound, in fp16.",
        "overflow in half precision",
        "https://github.com/apache/mxnet/issues/17703",
    ),
)
