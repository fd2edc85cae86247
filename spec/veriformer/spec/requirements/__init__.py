"""What the mathematics demands of an implementation, operation by operation, as records.

``REQUIREMENTS`` lists all of them, prerequisites before what rests on them; ``requirement(slug)`` finds one.
"""

from functools import cache

from veriformer.spec.requirement import Requirement
from veriformer.spec.requirements.accumulation import ACCUMULATE_GRADIENTS
from veriformer.spec.requirements.activations import GELU, SILU
from veriformer.spec.requirements.alibi import ALIBI_BIAS, ALIBI_SLOPES
from veriformer.spec.requirements.attention import ATTENTION
from veriformer.spec.requirements.beam_search import BEAM_SEARCH
from veriformer.spec.requirements.bpe import BPE_ENCODE, BPE_TRAIN
from veriformer.spec.requirements.caches import CACHED_ATTENTION, KV_CACHE
from veriformer.spec.requirements.calibration import EXPECTED_CALIBRATION_ERROR
from veriformer.spec.requirements.clipping import CLIP_GRAD_NORM
from veriformer.spec.requirements.cross_entropy import CROSS_ENTROPY
from veriformer.spec.requirements.dropout import DROPOUT
from veriformer.spec.requirements.filters import GREEDY, TOP_K_FILTER, TOP_P_FILTER
from veriformer.spec.requirements.layer_norm import LAYER_NORM
from veriformer.spec.requirements.linear_attention import LINEAR_ATTENTION
from veriformer.spec.requirements.lm_head import LM_HEAD
from veriformer.spec.requirements.logsumexp import LOGSUMEXP
from veriformer.spec.requirements.masked_lm_loss import MASKED_LM_LOSS
from veriformer.spec.requirements.masks import CAUSAL_MASK
from veriformer.spec.requirements.mixture_of_experts import MIXTURE_OF_EXPERTS
from veriformer.spec.requirements.models import CAUSAL_LM, MASKED_LM, SEQ2SEQ_LM
from veriformer.spec.requirements.mse_loss import MSE_LOSS
from veriformer.spec.requirements.multi_head_attention import MULTI_HEAD_ATTENTION
from veriformer.spec.requirements.networks import FEED_FORWARD, MLP
from veriformer.spec.requirements.optimizers import ADAM, ADAMW, GRADIENT_DESCENT, SGD_MOMENTUM
from veriformer.spec.requirements.perplexity import PERPLEXITY
from veriformer.spec.requirements.residual import RESIDUAL
from veriformer.spec.requirements.rms_norm import RMS_NORM
from veriformer.spec.requirements.rope import ROPE
from veriformer.spec.requirements.schedules import NOAM, WARMUP, WARMUP_COSINE
from veriformer.spec.requirements.sinusoidal_encoding import SINUSOIDAL_ENCODING
from veriformer.spec.requirements.smooth_labels import SMOOTH_LABELS
from veriformer.spec.requirements.softmax import SOFTMAX
from veriformer.spec.requirements.swiglu import SWIGLU
from veriformer.spec.requirements.t5_buckets import T5_RELATIVE_POSITION_BUCKET
from veriformer.spec.requirements.temperature_scale import TEMPERATURE_SCALE
from veriformer.spec.requirements.token_embedding import TOKEN_EMBEDDING
from veriformer.spec.requirements.transformer_block import TRANSFORMER_BLOCK
from veriformer.spec.requirements.unigram import UNIGRAM_SEGMENT
from veriformer.spec.requirements.xavier_normal import XAVIER_NORMAL

REQUIREMENTS: tuple[Requirement, ...] = (
    *SOFTMAX,
    *LOGSUMEXP,
    *CROSS_ENTROPY,
    *PERPLEXITY,
    *SMOOTH_LABELS,
    *TEMPERATURE_SCALE,
    *EXPECTED_CALIBRATION_ERROR,
    *MASKED_LM_LOSS,
    *MSE_LOSS,
    *MLP,
    *LAYER_NORM,
    *RMS_NORM,
    *RESIDUAL,
    *GELU,
    *SILU,
    *FEED_FORWARD,
    *SWIGLU,
    *MIXTURE_OF_EXPERTS,
    *DROPOUT,
    *XAVIER_NORMAL,
    *TOKEN_EMBEDDING,
    *LM_HEAD,
    *GRADIENT_DESCENT,
    *SGD_MOMENTUM,
    *ADAM,
    *ADAMW,
    *WARMUP,
    *WARMUP_COSINE,
    *NOAM,
    *CLIP_GRAD_NORM,
    *ACCUMULATE_GRADIENTS,
    *CAUSAL_MASK,
    *ATTENTION,
    *MULTI_HEAD_ATTENTION,
    *LINEAR_ATTENTION,
    *KV_CACHE,
    *CACHED_ATTENTION,
    *TRANSFORMER_BLOCK,
    *SINUSOIDAL_ENCODING,
    *ROPE,
    *ALIBI_SLOPES,
    *ALIBI_BIAS,
    *T5_RELATIVE_POSITION_BUCKET,
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
