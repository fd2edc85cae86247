"""Every check of the suite, prerequisites before what rests on them."""

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.catalogue import Check
from veriformer.verify.checks import (
    accuracy,
    attention_dropout,
    attention_edges,
    attention_laws,
    attention_options,
    batch,
    clipping,
    equation,
    forms_of_call,
    losses,
    masks,
    norms,
    perplexities,
    purity,
    refusal,
    scores,
    sensitivity,
)

_FAMILIES = (equation, purity, refusal, batch, sensitivity, forms_of_call, accuracy)
_LAWS = (scores, losses, perplexities, norms, clipping, masks)
_ATTENTION = (attention_options, attention_laws, attention_edges, attention_dropout)
_BY_SLUG: dict[str, Check] = {
    check.requirement.slug: check for module in (*_FAMILIES, *_LAWS, *_ATTENTION) for check in module.CHECKS
}

ALL: tuple[Check, ...] = tuple(_BY_SLUG[requirement.slug] for requirement in REQUIREMENTS)
"""One check per requirement, in the requirements' order."""
