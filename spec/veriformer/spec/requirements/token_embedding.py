"""Requirements of token embeddings (equation 39)."""

from veriformer.spec.requirement import Kind, Weight
from veriformer.spec.requirements import templates

REQUIREMENTS = (
    templates.contract("token_embedding", ("39",)),
    templates.equation("token_embedding", ("39",), r"$y_t = E_{\mathrm{id}_t}$, the product of a one-hot row and $E$."),
    templates.gradient(
        "token_embedding",
        ("39",),
        r"$\bar E_v = \sum_{t: \mathrm{id}_t = v} \bar y_t$: repeated tokens add up, and rows not read get zero.",
    ),
    templates.purity("token_embedding"),
    templates.layout("token_embedding"),
    templates.long("token_embedding"),
    *templates.refusals(
        "token_embedding",
        "No tensors, ids that are negative, too large or no integers, and tables that are no matrix are refused.",
    ),
    templates.batch("token_embedding", "Tokens are looked up one by one."),
    templates.sensitivity("token_embedding"),
    templates.law(
        "token_embedding",
        "lookup",
        "A lookup copies: nothing is scaled, added or rounded.",
        "The result equals the rows bit for bit, for ids of any integer dtype.",
        "changed embedding",
        equations=("39",),
        precedents=("https://github.com/pytorch/tutorials/issues/2849",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "token_embedding",
        "repeated",
        "A token that occurs many times collects all its cotangents, and one that does not occur none.",
        "The sum is within its bound; the gradient of a row that was not read is zero exactly.",
        "lost repetitions",
        equations=("39",),
        weight=Weight.WRONG,
    ),
    templates.law(
        "token_embedding",
        "range",
        "The sum over repeated tokens is finite where its value is, though its parts may not be.",
        "The gradient is finite and within its bound, in fp16.",
        "overflow in half precision",
        kind=Kind.NUMERICS,
        equations=("39",),
        precedents=("https://github.com/apache/mxnet/issues/17703",),
        weight=Weight.FRAGILE,
    ),
)
