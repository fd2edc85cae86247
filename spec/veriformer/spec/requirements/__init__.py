"""What the mathematics demands of an implementation, operation by operation, as records.

``REQUIREMENTS`` lists all of them, prerequisites before what rests on them; ``requirement(slug)`` finds one.
"""

from functools import cache

from veriformer.spec.requirement import Requirement
from veriformer.spec.requirements.attention import ATTENTION
from veriformer.spec.requirements.clipping import CLIP_GRAD_NORM
from veriformer.spec.requirements.cross_entropy import CROSS_ENTROPY
from veriformer.spec.requirements.layer_norm import LAYER_NORM
from veriformer.spec.requirements.logsumexp import LOGSUMEXP
from veriformer.spec.requirements.masks import CAUSAL_MASK
from veriformer.spec.requirements.perplexity import PERPLEXITY
from veriformer.spec.requirements.rms_norm import RMS_NORM
from veriformer.spec.requirements.softmax import SOFTMAX

REQUIREMENTS: tuple[Requirement, ...] = (
    *SOFTMAX,
    *LOGSUMEXP,
    *CROSS_ENTROPY,
    *PERPLEXITY,
    *LAYER_NORM,
    *RMS_NORM,
    *CLIP_GRAD_NORM,
    *CAUSAL_MASK,
    *ATTENTION,
)
"""Every requirement, in the order of the contract."""


@cache
def _by_slug() -> dict[str, Requirement]:
    return {requirement.slug: requirement for requirement in REQUIREMENTS}


def requirement(slug: str) -> Requirement:
    """The requirement of that slug. Raises KeyError that names the slug where there is none."""
    return _by_slug()[slug]


__all__ = ["REQUIREMENTS", "Requirement", "requirement"]
