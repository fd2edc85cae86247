"""Every check of the suite, prerequisites before what rests on them."""

from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.binding import Check
from veriformer.verify.checks import (
    accumulation,
    accuracy,
    activations,
    attention_dropout,
    attention_edges,
    attention_laws,
    attention_long,
    attention_options,
    batch,
    beams,
    blocks,
    bpe,
    cached,
    caches,
    calibrations,
    clipping,
    dropout,
    embeddings,
    equation,
    experts,
    far_classes,
    filters,
    forms_of_call,
    heads,
    initialisation,
    linear,
    losses,
    masked_lm,
    masks,
    models,
    models_causal,
    models_source,
    models_training,
    networks,
    norms,
    optimizers,
    perplexities,
    positions,
    purity,
    refusal,
    rotary,
    schedules,
    scores,
    sensitivity,
    smoothing,
    squares,
    temperatures,
    training,
    unigram,
)

_FAMILIES = (equation, purity, refusal, batch, sensitivity, forms_of_call, accuracy)
_LAWS = (scores, losses, perplexities, norms, clipping, masks)
_ATTENTION = (attention_options, attention_long, attention_laws, attention_edges, attention_dropout)
_HEADS = (heads, linear, caches, cached, blocks)
_MODELS = (models, models_causal, models_source, models_training)
_DECISIONS = (smoothing, temperatures, calibrations, masked_lm, far_classes)
_GENERATION = (filters, beams, bpe, unigram)
_TRAINING = (training, optimizers, schedules, accumulation)
_LAYERS = (squares, activations, networks, experts, dropout, initialisation, embeddings)
_POSITIONS = (rotary, positions)
_BY_SLUG: dict[str, Check] = {
    check.requirement.slug: check
    for module in (
        *_FAMILIES,
        *_LAWS,
        *_ATTENTION,
        *_TRAINING,
        *_HEADS,
        *_LAYERS,
        *_POSITIONS,
        *_MODELS,
        *_DECISIONS,
        *_GENERATION,
    )
    for check in module.CHECKS
}

ALL: tuple[Check, ...] = tuple(_BY_SLUG[requirement.slug] for requirement in REQUIREMENTS)
"""One check per requirement, in the requirements' order."""
