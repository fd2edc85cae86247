"""A Transformer that does what the mathematics says: each operation of the contract is an attribute of this package.

`attention` is one of `BACKENDS`, which all take the same arguments and mean the same.
"""

from veriformer.impl.attention_backends import BACKENDS
from veriformer.impl.attention_backends.masks import causal_mask
from veriformer.impl.layers.layer_norm import layer_norm
from veriformer.impl.layers.rms_norm import rms_norm
from veriformer.impl.optimization.clipping import clip_grad_norm
from veriformer.impl.scores.cross_entropy import cross_entropy
from veriformer.impl.scores.logsumexp import logsumexp
from veriformer.impl.scores.perplexity import perplexity
from veriformer.impl.scores.softmax import softmax

attention = BACKENDS["sdpa"]

__all__ = [
    "BACKENDS",
    "attention",
    "causal_mask",
    "clip_grad_norm",
    "cross_entropy",
    "layer_norm",
    "logsumexp",
    "perplexity",
    "rms_norm",
    "softmax",
]
