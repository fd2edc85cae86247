"""Softmax, its logarithm of a sum, and probabilities at a temperature, as functions."""

from __future__ import annotations

from veriformer.verify.forms.named import VARIANTS, Known, form_of, words_of

_Z = {"z": ("z", "x", "input", "inputs", "logits", "scores", "a", "tensor", "X")}
_DIM = {"dim": ("dim", "axis")}

SOFTMAX = Known("softmax", words_of("softmax"), _Z, _DIM, frozenset(("log", "gumbel", "cross", "masked")) | VARIANTS)
LOGSUMEXP = Known("logsumexp", words_of("logsumexp", "log sum exp"), _Z, _DIM)

FORMS = (form_of("functions/softmax", SOFTMAX), form_of("functions/logsumexp", LOGSUMEXP))
