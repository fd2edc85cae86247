"""``generate`` of a whole model against its own forward pass: greedy, sampled, and where the text is cropped."""

# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from veriformer.verify.judging.judge import Floats
from veriformer.verify.laws.chance import ERROR_RATE
from veriformer.verify.laws.family import check
from veriformer.verify.operations.models import decision
from veriformer.verify.operations.models.agreement import EFFORT, ModelExample, model_property
from veriformer.verify.operations.models.answer import Answer
from veriformer.verify.operations.models.applies import (
    generates_beyond_its_window,
    generates_by_chance,
    generates_greedily,
    writes_batches,
)
from veriformer.verify.scripts import model_drivers as calls
from veriformer.verify.strategies import choice

ROWS = 1024
"""Texts that are drawn from one prompt, so that shares are known to a tenth; a quarter of them one by one."""

_SHARP = (1.0, 0.5, 2.0)
"""Gaps between the two largest scores, in units of the temperature, where it is chosen."""


def _written(e: ModelExample, ids: torch.Tensor, new: int, **given: Any) -> tuple[torch.Tensor, str]:
    """Return the text [B, n + new] of ``generate``, and its name in a script. Raises Violation for another shape."""
    apart: dict[str, Any] = {} if writes_batches(e.subject) else {"each": True}
    outcome = e.ask("generated", ids=ids, new=new, **apart, **given)
    x, n, ids = outcome.value, ids.shape[1], ids.expand(given.get("rows", len(ids)), -1)
    shape = isinstance(x, torch.Tensor) and tuple(x.shape) == (len(ids), n + new) and not x.is_floating_point()
    got = tuple(x.shape) if isinstance(x, torch.Tensor) else type(x).__name__
    said = f"tuple({outcome.name}.shape) == {(len(ids), n + new)}"
    e.trial.assert_true(shape, f"generate gave {got} for {new} tokens after {tuple(ids.shape)}", said, about="shape")
    kept = bool((x[:, :n] == ids).all())
    said = f"bool(({outcome.name}[:, :{n}] == torch.tensor({ids[:2].unique(dim=0).tolist()!r})).all())"
    e.trial.assert_true(kept, "the text does not begin with its prompt", said, about="prompt")
    known = bool(((x >= 0) & (x < e.subject.vocabulary)).all())
    said = f"bool((({outcome.name} >= 0) & ({outcome.name} < {e.subject.vocabulary})).all())"
    e.trial.assert_true(known, "a token is none of the vocabulary's", said, about="vocabulary")
    return x, outcome.name


def _behind(answer: Answer, text: torch.Tensor, new: int) -> Floats:
    """Return the gap between the largest score and that of each chosen token, by row and step in turn."""
    chosen = text[:, -new:].reshape(-1)
    cells = torch.as_tensor(np.stack(answer.cells))
    found = cells.max(-1).values - cells.gather(-1, chosen[:, None])[:, 0]
    return np.asarray(found.numpy(), dtype=np.float64)


def _is_greedy(e: ModelExample, ids: torch.Tensor, new: int, window: int | None, what: str) -> None:
    text, name = _written(e, ids, new, greedy=True)
    asked: dict[str, Any] = {} if window is None else {"window": window}
    answer = e.answer("decoded", ids=text, new=new, **asked)
    behind = _behind(answer, text, new)
    bound = np.zeros(len(behind))
    if behind.any():
        bound = decision.decided(behind, lambda runs: 4 * answer.squares(runs))
    worst = int(np.argmax(behind - bound))
    row, step = divmod(worst, new)
    e.trial.effective.append(True)
    logits = f"{answer.outcome.name}[{row}, {step}]"
    said = f"float({logits}.max() - {logits}[{name}[{row}, {ids.shape[1] + step}]]) <= {float(bound[worst])!r}"
    message = (
        f"{what}: new token {step} of row {row} has a logit {behind[worst]:.3g} below the largest of the model's own"
    )
    e.trial.assert_true(bool(behind[worst] <= bound[worst]), message, said, about=what)


def _greedy(e: ModelExample) -> None:
    e.B, e.n = min(e.B, 2), min(e.n, 12)
    _is_greedy(e, e.tokens(), e.trial.draw(choice(4, 1, 7)), None, "greedy decoding")


def _crop(e: ModelExample) -> None:
    window = calls.window_of(e.subject.model()) or 1
    e.B, e.n = min(e.B, 2), window + e.trial.draw(choice(-1, 0, -2))
    _is_greedy(e, e.tokens(), 4, window, f"decoding beyond {window} tokens")


def _sampled(e: ModelExample) -> None:
    """Check how often each rank of the scores is sampled, step by step, over many texts of one prompt."""
    e.B, e.n = 1, min(e.n, 8)
    names, prompt, new = calls.settings_of(e.subject.model()), e.tokens(), 3
    first = np.sort(e.finite(e.ask("decoded", ids=torch.cat((prompt, prompt[:, :1]), 1), new=1))[0])[::-1]
    given: dict[str, Any] = {}
    if "temperature" in names:
        given["temperature"] = float((first[0] - first[1]) / e.trial.draw(choice(*_SHARP)))
        e.trial.assume(given["temperature"] > 0)
    k = None
    if "top_k" in names:
        asked = e.trial.draw(choice(2, 3, None))
        given |= {} if asked is None else {"top_k": min(asked, e.subject.vocabulary)}
        k = given.get("top_k", calls.usual_top_k(e.subject.model()))
    rows = ROWS if writes_batches(e.subject) else ROWS // 4
    text, name = _written(e, prompt, new, rows=rows, seed=e.seed % 2**31, **given)
    kinds, inverse = torch.unique(text[:, :-1], dim=0, return_inverse=True)
    whole = torch.cat((kinds, kinds[:, -1:]), 1)  # the last token is chosen from, and not read
    logits = torch.cat([e.ask("decoded", ids=part, new=new).value for part in whole.split(256)])[inverse].double()
    _support(e, logits, text, new, k, name)
    _shares(e, logits / given.get("temperature", 1.0), text, new, k, name)


def _support(e: ModelExample, logits: torch.Tensor, text: torch.Tensor, new: int, k: int | None, name: str) -> None:
    if k is None or k >= logits.shape[-1]:
        return
    order = logits.sort(dim=-1, descending=True, stable=True).indices
    place = (order == text[:, -new:, None]).double().argmax(-1)
    edge = logits.gather(-1, order)[..., k - 1]
    chosen = logits.gather(-1, text[:, -new:, None])[..., 0]
    slack = 64 * e.subject.eps * logits.abs().amax()  # a tie at the edge may be settled either way
    outside = (place >= k) & (chosen < edge - slack)
    worst = tuple(outside.nonzero()[0].tolist()) if bool(outside.any()) else (0, 0)
    message = f"with top_k = {k} a token of rank {int(place[worst]) + 1} was drawn"
    e.trial.assert_true(not bool(outside.any()), message, _drawn_again(text, name), about="support")


def _shares(e: ModelExample, scores: torch.Tensor, text: torch.Tensor, new: int, k: int | None, name: str) -> None:
    """Check the shares of ranks 1, 2 and 3, each against its mean probability.

    Hoeffding: P(|share − mean probability| ≥ t) ≤ 2 exp(−2 n t²), by a union bound over all shares.
    """
    order = scores.sort(dim=-1, descending=True, stable=True).indices
    if k is not None:
        scores = scores.scatter(-1, order[..., k:], -torch.inf)
    probabilities = scores.softmax(-1).gather(-1, order[..., :3]).mean(0)
    found = (order[..., :3] == text[:, -new:, None]).double().mean(0)
    edge = float(np.sqrt(np.log(2 * found.numel() / ERROR_RATE) / (2 * len(text))))
    off = (found - probabilities).abs()
    worst = divmod(int(off.argmax()), off.shape[1])
    message = (
        f"new token {worst[0]} is the one of rank {worst[1] + 1} in {found[worst]:.0%} of {len(text)} texts, where the "
        f"forward pass gives it a probability of {probabilities[worst]:.0%} (chance explains {edge:.0%})"
    )
    e.trial.assert_true(bool(off[worst] <= edge), message, _drawn_again(text, name), about="shares")


def _drawn_again(text: torch.Tensor, name: str) -> str:
    """Return an expression that is true if a script draws other texts: by a sum of tokens times places."""
    places = torch.arange(1, text.numel() + 1).reshape(text.shape)
    weighted = f"{name} * torch.arange(1, {name}.numel() + 1).reshape({name}.shape)"
    return f"int(({weighted}).sum()) != {int((text * places).sum())}"


_ROWS = (
    ("greedy", _greedy, generates_greedily),
    ("crop", _crop, generates_beyond_its_window),
    ("sampled", _sampled, generates_by_chance),
)

CHECKS = tuple(
    check(f"causal_lm.{name}", model_property(body), dtypes=("fp64", "fp32"), effort=EFFORT, applies=applies)
    for name, body, applies in _ROWS
)
