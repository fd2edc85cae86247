"""Softmax as a function, and the names of what functions of scores take."""

from __future__ import annotations

from veriformer.verify.forms.named import VARIANTS, Known, form_of, words_of

Z = {"z": ("z", "x", "input", "inputs", "logits", "scores", "a", "tensor", "X")}
DIM = {"dim": ("dim", "axis")}

SOFTMAX = Known("softmax", words_of("softmax"), Z, DIM, frozenset(("log", "gumbel", "cross", "masked")) | VARIANTS)

FORM = form_of("functions/softmax", SOFTMAX)
