"""What the mathematics demands of an implementation, operation by operation, as records.

``REQUIREMENTS`` lists all of them, prerequisites before what rests on them; ``requirement(slug)`` finds one.
"""

from functools import cache

from veriformer.spec.requirement import Requirement
from veriformer.spec.requirements.attention import ATTENTION
from veriformer.spec.requirements.beam_search import BEAM_SEARCH
from veriformer.spec.requirements.bpe import BPE_ENCODE, BPE_TRAIN
from veriformer.spec.requirements.caches import CACHED_ATTENTION, KV_CACHE
from veriformer.spec.requirements.calibration import EXPECTED_CALIBRATION_ERROR
from veriformer.spec.requirements.clipping import CLIP_GRAD_NORM
from veriformer.spec.requirements.cross_entropy import CROSS_ENTROPY
from veriformer.spec.requirements.filters import GREEDY, TOP_K_FILTER, TOP_P_FILTER
from veriformer.spec.requirements.layer_norm import LAYER_NORM
from veriformer.spec.requirements.linear_attention import LINEAR_ATTENTION
from veriformer.spec.requirements.logsumexp import LOGSUMEXP
from veriformer.spec.requirements.masked_lm_loss import MASKED_LM_LOSS
from veriformer.spec.requirements.masks import CAUSAL_MASK
from veriformer.spec.requirements.models import CAUSAL_LM, MASKED_LM, SEQ2SEQ_LM
from veriformer.spec.requirements.multi_head_attention import MULTI_HEAD_ATTENTION
from veriformer.spec.requirements.perplexity import PERPLEXITY
from veriformer.spec.requirements.rms_norm import RMS_NORM
from veriformer.spec.requirements.smooth_labels import SMOOTH_LABELS
from veriformer.spec.requirements.softmax import SOFTMAX
from veriformer.spec.requirements.temperature_scale import TEMPERATURE_SCALE
from veriformer.spec.requirements.transformer_block import TRANSFORMER_BLOCK
from veriformer.spec.requirements.unigram import UNIGRAM_SEGMENT

REQUIREMENTS: tuple[Requirement, ...] = (
    *SOFTMAX,
    *LOGSUMEXP,
    *CROSS_ENTROPY,
    *PERPLEXITY,
    *SMOOTH_LABELS,
    *TEMPERATURE_SCALE,
    *EXPECTED_CALIBRATION_ERROR,
    *MASKED_LM_LOSS,
    *LAYER_NORM,
    *RMS_NORM,
    *CLIP_GRAD_NORM,
    *CAUSAL_MASK,
    *ATTENTION,
    *MULTI_HEAD_ATTENTION,
    *LINEAR_ATTENTION,
    *KV_CACHE,
    *CACHED_ATTENTION,
    *TRANSFORMER_BLOCK,
    *TOP_K_FILTER,
    *TOP_P_FILTER,
    *GREEDY,
    *BEAM_SEARCH,
    *BPE_TRAIN,
    *BPE_ENCODE,
    *UNIGRAM_SEGMENT,
    *CAUSAL_LM,
    *MASKED_LM,
    *SEQ2SEQ_LM,
)
"""Every requirement, in the order of the contract."""


@cache
def _by_slug() -> dict[str, Requirement]:
    return {requirement.slug: requirement for requirement in REQUIREMENTS}


def requirement(slug: str) -> Requirement:
    """The requirement of that slug. Raises KeyError that names the slug where there is none."""
    return _by_slug()[slug]


__all__ = ["REQUIREMENTS", "Requirement", "requirement"]
