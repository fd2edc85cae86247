"""Correct implementations that go another way than the bases do, to measure false alarms."""

from __future__ import annotations

from veriformer.verify.mutants.correct_variants import (
    attention,
    caches,
    decisions,
    generation,
    heads,
    layers,
    models,
    networks,
    positions,
    scores,
    training,
)
from veriformer.verify.mutants.records import Variant

VARIANTS: tuple[Variant, ...] = (
    *scores.VARIANTS,
    *layers.VARIANTS,
    *attention.VARIANTS,
    *heads.VARIANTS,
    *caches.VARIANTS,
    *training.VARIANTS,
    *decisions.VARIANTS,
    *generation.VARIANTS,
    *networks.VARIANTS,
    *positions.VARIANTS,
    *models.VARIANTS,
)
