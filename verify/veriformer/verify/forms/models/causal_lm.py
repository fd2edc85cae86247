"""A whole model that predicts each token from those before it, as a class: built small, and called with tokens."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from veriformer.verify.forms.builders import as_class, is_builder
from veriformer.verify.forms.caches_inside import Placing, placings
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.causality import reads
from veriformer.verify.forms.config_names import CONFIGS
from veriformer.verify.forms.construction import takes_size
from veriformer.verify.forms.encoder_decoder import Masks, decoder_input, encoder_input, masks_demanded
from veriformer.verify.forms.form import Fit, Form, Match, Readings, Unfit
from veriformer.verify.forms.language_model import (
    Calling,
    LanguageModel,
    last_among,
    logits_among,
    shapes,
    wrap_model,
)
from veriformer.verify.forms.models.generation import generating, with_generate, writes
from veriformer.verify.forms.models.loss import SPREAD, label_readings, loss_is_answered, loss_is_right
from veriformer.verify.forms.models.small_model import (
    SIZES,
    made_causal,
    quietly,
    small_model,
    tokens,
    vocabulary_of,
)
from veriformer.verify.forms.signatures import roles
from veriformer.verify.forms.size_names import size_of

_IDS = (
    *("idx", "input_ids", "ids", "tokens", "in_idx", "token_ids"),
    *("x", "input", "inputs", "inp", "input_seq", "seq", "src"),
)
_OPTIONAL = {
    "targets": ("targets", "labels", "target", "y", "label", "lm_labels"),
    "past": ("past_key_values", "past", "cache", "kv_cache", "past_kv", "kv_caches", "caches", "layer_past"),
    "cached": ("use_cache", "return_cache", "use_kv_cache"),
    "start": ("start_pos", "start_position", "input_pos", "pos", "offset"),
}
_NO_CACHE = "its cache is left out: a call could not go on from what another returned"
_NAMES = ("gpt", "llama", "causal", "languagemodel", "transformer", "decoder", "mistral", "qwen", "gemma", "bigram")
_BOTH_WAYS = {"bert", "encoder", "mlm", "masked", "seq2seq", "t5", "classifier", "vit"}
_PARTS = {"attention", "block", "layer", "embedding", "head", "norm", "mlp", "config", "feed"}
"""Words that name a part of a model."""


def _match(candidate: Candidate) -> Match | None:
    if is_builder(candidate):
        return _match_of_built(candidate)
    return _match_of_class(candidate)


def _match_of_built(candidate: Candidate) -> Match | None:
    """Match the class of the model that a function builds, where its class cannot be built by itself."""
    if not any(name in "".join(candidate.words) for name in (*_NAMES, "model")) or not _takes_vocabulary(candidate):
        return None
    made = _of_builder(candidate)
    kind = made.thing.__base__
    with contextlib.suppress(Unfit):
        small_model(Candidate(kind.__name__, kind, candidate.module))
        return None
    return _match_of_class(made)


def _takes_vocabulary(candidate: Candidate) -> bool:
    names = candidate.parameters
    return any(name in CONFIGS or size_of(name, names) == "vocabulary" for name in names)


def _of_builder(candidate: Candidate) -> Candidate:
    """Return the candidate itself, or where it is a function that builds models the class of those."""
    return as_class(candidate, small_model) if is_builder(candidate) else candidate


def _match_of_class(candidate: Candidate) -> Match | None:
    own = set(candidate.words)
    if (
        not candidate.is_network
        or (own & _PARTS and not {"lm", "model"} <= own)
        or not takes_size(candidate, "vocabulary")
    ):
        return None
    named = any(name in "".join(candidate.words) for name in _NAMES) or "lm" in own
    try:
        if own & _BOTH_WAYS and not encoder_input(candidate.parameters):
            raise Unfit("its name says that it does not go from left to right")
        _, told, readings = _looked_at(candidate)
    except Unfit:
        if named or _is_language_model(candidate):
            raise
        return None
    pasts = [name for name in candidate.parameters if name in _OPTIONAL["past"]]
    return Match(named, readings, told, left_out=tuple(pasts) if _NO_CACHE in told else ())


def _is_language_model(candidate: Candidate) -> bool:
    """Return whether the first argument is named as tokens."""
    return next(iter(candidate.parameters), "") in _IDS[:6]


def _looked_at(candidate: Candidate) -> tuple[Calling, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Return the signature of the call, remarks on it, and the readings of its labels. Raises Unfit where it cannot be
    called."""
    source = encoder_input(candidate.parameters)
    masks = masks_demanded(candidate.parameters) if source else None
    given = {} if masks is None else {"source_mask": (masks.source,), "target_mask": (masks.target,)}
    names = (
        roles(candidate.parameters, {"source": (source,), "ids": (decoder_input(candidate.parameters),)}, given)
        if source
        else roles(candidate.parameters, {"ids": _IDS}, _OPTIONAL)
    )
    if names is None:
        raise Unfit("its call has no argument that is known to take tokens")
    start = {names["start"]: 0} if "start" in names and _demanded(candidate, names["start"]) else {}
    how = Calling(names["ids"], names.get("targets", ""), always=start, source=source)
    model = small_model(candidate)
    if not any(size in p.shape for p in model.parameters() for size in _padded(vocabulary_of(how))):
        raise Unfit("none of its parameters has the vocabulary as an axis")
    told = tuple(f"built with {name} = True" for name in made_causal(candidate))
    how, more = _with_writer(candidate, how)
    told += more
    if masks is not None:
        masks = _masks_as_they_hide(model, how, masks)
        how = dataclasses.replace(how, masks=masks)
        told += (masks.told(),)
    elif _mixes_rows(model, how):
        how = dataclasses.replace(how, targets="", tokens_first=True)
        told += ("tokens are given as [n, B]",)
    placing = _placing(model, how, names["start"]) if "start" in names and not how.tokens_first else None
    if placing is not None and placing.needed:
        how = dataclasses.replace(how, placing=placing, targets="", always={})
    else:
        how, more = _with_logits_of_every_token(model, how)
        told = (*told, *more)
    if placing is not None and not (how.last or how.fed):
        how = dataclasses.replace(how, placing=placing)
        setup = f", set up by {placing.setup}" if placing.setup else ""
        told = (*told, f"each text has caches of its own{setup}, and its positions as {placing.position}")
    _refuse_chance(model, how)
    if "attention_mask" in candidate.parameters and not how.tokens_first and _answered(model, how, masked=True):
        how = dataclasses.replace(how, masked=True)
    if "past" in names and not (how.last or how.tokens_first) and how.placing is None:
        cached = dataclasses.replace(how, past=names["past"], cached=names.get("cached", ""))
        goes_on = _goes_on(model, cached)
        how = cached if goes_on else how
        told += () if goes_on else (_NO_CACHE,)
    readings, more = label_readings(model, how)
    return how, (*told, *more), readings


def _with_writer(candidate: Candidate, how: Calling) -> tuple[Calling, tuple[str, ...]]:
    """Add the function that generates text with the model, where there is one that continues from tokens."""
    name = generating(candidate)
    if not name:
        return how, ()
    called = f"{name}(model, …)"
    with_writer = with_generate(candidate, name, small_model(candidate), SIZES["length"])
    try:
        quietly(lambda: writes(with_writer, tokens(3)[:1]))
    except Exception as error:
        said = f"{type(error).__name__}: {str(error)[:100]}"
        return how, (f"{called} is left out: with tokens and how many to add it raised {said}",)
    return dataclasses.replace(how, writer=name), (f"texts are written by {called}",)


def _padded(vocabulary: int) -> list[int]:
    """Return the vocabulary, and what it is filled up to where a multiple is held."""
    return [vocabulary, *(-(-vocabulary // multiple) * multiple for multiple in (64, 128, 256, 512))]


def _masks_as_they_hide(model: nn.Module, how: Calling, masks: Masks) -> Masks:
    """Return the first way to pass the masks that is causal and hides no earlier token, else the first that is
    answered.
    """
    answered = []
    for way in masks.ways():
        tried = wrap_model(model, dataclasses.replace(how, masks=way), vocabulary_of(how))
        try:
            found = reads(partial(_logits, tried), tokens(4)[:1], _another)
        except Exception:
            continue
        if torch.equal(found, torch.ones_like(found).tril()):
            return way
        answered.append(way)
    return next(iter(answered), masks)


def _logits(model: LanguageModel, ids: Tensor) -> Tensor:
    logits: Tensor = quietly(lambda: model(ids)).logits
    return logits


def _mixes_rows(model: nn.Module, how: Calling) -> bool:
    """Return whether a token changes the result of other rows at its position and of no other position of its row: rows
    are the positions."""
    ids, other = tokens(), tokens()
    other[:, 2] = torch.where(torch.arange(len(ids)) == 0, _another(ids[:, 2]), ids[:, 2])
    try:
        one, two = (
            logits_among(quietly(partial(model, **{how.ids: x}, **how.always)), x, SIZES["vocabulary"])
            for x in (ids, other)
        )
    except Exception:
        return False
    if one is None or two is None:
        return False
    changed = (one != two).any(-1)
    elsewhere = torch.arange(ids.shape[1]) != 2
    return bool(changed[1:, 2].any()) and not bool(changed[:, elsewhere].any())


def _another(ids: Tensor) -> Tensor:
    return ids % (SIZES["vocabulary"] - 1) + 1


def _demanded(candidate: Candidate, name: str) -> bool:
    return candidate.parameters[name].default is candidate.parameters[name].empty


def _with_logits_of_every_token(model: nn.Module, how: Calling) -> tuple[Calling, tuple[str, ...]]:
    ids, vocabulary = tokens(), vocabulary_of(how)
    always = {**how.always, **how.of_source(ids)}
    told: tuple[str, ...] = ()
    if how.source:
        told = (f"what the encoder reads as {how.source} is the same in every call",)
    try:
        plain = quietly(lambda: model(**{how.ids: ids}, **always))
    except Exception as error:
        raise Unfit(f"a call with tokens raised {type(error).__name__}: {str(error)[:100]}") from error
    if logits_among(plain, ids, vocabulary) is not None:
        return how, told
    said = f"it gives {shapes(plain)}, not logits {(*ids.shape, vocabulary)} of every token"
    last = last_among(plain, len(ids), vocabulary) is not None
    alone = "only the last token has logits: every beginning is a call, so that looking ahead cannot be seen"
    by_last = dataclasses.replace(how, last=True, targets=""), (*told, alone)
    if not how.targets:
        if last:
            return by_last
        raise Unfit(f"{said}, and takes no targets to give them for")
    try:
        fed = quietly(lambda: model(**{how.ids: ids, how.targets: ids}, **how.always))
    except Exception as error:
        raise Unfit(f"{said}, and with targets raised {type(error).__name__}: {str(error)[:80]}") from error
    if logits_among(fed, ids, vocabulary) is None:
        if last:
            return by_last
        raise Unfit(f"{said}, with targets neither")
    only = f"logits of every token are given only with {how.targets}: the tokens themselves are passed"
    return dataclasses.replace(how, fed=True), (*told, only)


def _placing(model: nn.Module, how: Calling, position: str) -> Placing | None:
    """Return the first way in which positions are given that answers a text in two calls; None without one.

    A model that may be called without them is, where no cache is asked for.
    """
    ids, demanded = tokens(), position in how.always
    for placing in placings(model, position):
        if demanded and not placing.needed:
            continue  # what it keeps of such a call would be that of every text
        tried = dataclasses.replace(how, placing=placing, always={}, targets="")
        if _in_two_calls(wrap_model(model, tried, vocabulary_of(how)), ids):
            return placing
    return None


def _in_two_calls(model: LanguageModel, ids: Tensor) -> bool:
    """Return whether a text is answered at once, and from a cache."""
    try:
        quietly(lambda: model(ids))
        past = quietly(lambda: model(ids[:, :3], use_cache=True)).past_key_values
        quietly(lambda: model(ids[:, 3:4], past_key_values=past, use_cache=True))
    except Exception:
        return False
    return True


def _refuse_chance(model: nn.Module, how: Calling) -> None:
    """Raise Unfit for a model that draws numbers while it is evaluated: no two calls of it could be compared."""
    with_chance, ids = wrap_model(model, how, vocabulary_of(how)), tokens()
    found = []
    with torch.random.fork_rng():
        for seed in (0, 1, 0):
            torch.manual_seed(seed)
            found.append(quietly(lambda: with_chance(ids)).logits)
    if torch.equal(found[0], found[2]) and not torch.equal(found[0], found[1]):  # else an earlier call shows
        raise Unfit("two calls with the same tokens give other logits, in evaluation mode too")


def _answered(model: nn.Module, how: Calling, *, masked: bool) -> bool:
    ids = tokens()
    try:
        with_mask = wrap_model(model, dataclasses.replace(how, masked=masked), SIZES["vocabulary"])
        quietly(lambda: with_mask(ids, attention_mask=torch.ones_like(ids)))
    except Exception:
        return False
    return True


def _goes_on(model: nn.Module, how: Calling) -> bool:
    """Return whether a call goes on from the cache that another one returned, rightly or not."""
    with_cache, ids = wrap_model(model, how, SIZES["vocabulary"]), tokens()
    try:
        past = quietly(lambda: with_cache(ids[:, :3], use_cache=True)).past_key_values
        return past is not None and bool(quietly(lambda: with_cache(ids[:, 3:4], past_key_values=past, use_cache=True)))
    except Exception:
        return False


def _bind(candidate: Candidate, readings: Readings) -> Callable[..., Any]:
    candidate = _of_builder(candidate)
    how, _, _ = _looked_at(candidate)
    if readings:
        how = dataclasses.replace(how, labels=readings["labels"], ignored=int(readings["ignored"]))

    def causal_lm() -> LanguageModel:
        seed = torch.initial_seed() % 2**31
        model = with_generate(candidate, how.writer, small_model(candidate, seed), SIZES["length"])
        return wrap_model(model, how, vocabulary_of(how), SIZES["vocabulary"])

    return causal_lm


def _judge(function: Callable[..., Any]) -> Fit:
    """Judge causality, and the loss against the labels: all that can be judged without the weights."""
    model = function()
    ids, others = tokens(), tokens(seed=2)
    others[:, :3] = ids[:, :3]
    one, two = (quietly(partial(model, x)).logits for x in (ids, others))
    near = bool((one - two)[:, :3].abs().max() <= SPREAD * one.abs().max())
    moved = bool((one - two)[:, 3:].abs().max() > 0)
    held = [bool(one.isfinite().all()), near, moved]
    how = model.calling
    if how.labels:
        held.append(loss_is_right(model.inner, how, how.labels, how.ignored))
    share = sum(held) / len(held)
    # Of two wrong readings the one by which labels can be given is nearer.
    closeness = share / 2 if how.labels and not loss_is_answered(model, ids) else share
    return Fit(len(held), len(held), sum(held), all(held[:3]), share, closeness)


FORM = Form(
    name="models/causal_lm",
    operation="causal_lm",
    says="a class built small: model(idx) or model(src, tgt) gives logits of every token, or of the last",
    match=_match,
    bind=_bind,
    judge=_judge,
    closed=True,
)
