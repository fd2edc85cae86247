"""A language model built small, from its class or by a function, and the tokens that it is called with."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.encoder_decoder import encoder_input
from veriformer.verify.forms.form import Unfit
from veriformer.verify.forms.language_model import Calling

SIZES: Mapping[str, int] = {
    "width": 32,
    "heads": 4,
    "kv_heads": 2,
    "head_dim": 8,
    "inner": 48,
    "layers": 2,
    "vocabulary": 29,
    "length": 128,
    "batch": 16,
    "experts": 4,
    "top_k": 2,
}
"""Sizes of the model that is judged: no other one is as large as the vocabulary, so that it tells logits."""

_GIVEN: Mapping[str, Any] = {"model_type": None}
"""Constructor arguments that would set sizes by the name of a published model."""

_CAUSAL = ("causal", "is_causal", "autoregressive", "is_decoder")


def vocabulary_of(how: Calling) -> int:
    """Return the model's number of tokens: with an encoder one more, which is the padding and is never judged."""
    return SIZES["vocabulary"] + bool(how.source)


def made_causal(candidate: Candidate) -> dict[str, bool]:
    """Return the constructor's own arguments by which a model goes from left to right, turned on where they are off."""
    own = candidate.constructor
    return {name: True for name in _CAUSAL if name in own and own[name].default in (False, own[name].empty)}


def small_model(candidate: Candidate, seed: int = 0) -> nn.Module:
    """Return the model in evaluation mode, its weights drawn by the seed. Raises Unfit where it cannot be built."""
    sizes, given = dict(SIZES), {**_GIVEN, **made_causal(candidate)}
    if encoder_input(candidate.parameters):
        pads = [name for name in candidate.constructor if "pad" in name.lower() and "padding_mode" not in name]
        sizes |= {"vocabulary": SIZES["vocabulary"] + 1, "pad": SIZES["vocabulary"]}
        given |= dict.fromkeys(pads, SIZES["vocabulary"])
        given |= {name: 1 for name in candidate.constructor if "sos_" in name or "bos_" in name}
        given |= {name: 2 for name in candidate.constructor if "eos_" in name}
    with contextlib.redirect_stdout(io.StringIO()):
        model = built(candidate, sizes, given, seed=seed)
    if not isinstance(model, nn.Module):
        raise Unfit("its constructor gives no module")
    return model.eval()


def tokens(n: int = 5, seed: int = 0) -> Tensor:
    """Return two texts of n tokens [2, n], the same for the same seed; none is 0."""
    return torch.randint(1, SIZES["vocabulary"], (2, n), generator=torch.Generator().manual_seed(seed))


def quietly(call: Callable[[], Any]) -> Any:
    """Call without gradients, and without its output and warnings."""
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return call()
