"""Domains of scores: logits, log-probabilities or probabilities, as the name of an argument or the docstring states."""

from __future__ import annotations

import inspect
import re

import torch
from torch import Tensor

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.form import NotOffered

TAKES = ("logits", "log-probabilities", "probabilities")

LOG_PROBS = (
    *("logprobs", "log_probs", "logprob", "log_prob", "lprobs", "lnprobs", "logp", "log_p", "logps"),
    *("log_probabilities", "log_softmax", "next_token_logprobs", "token_logprobs"),
)
PROBS = ("probs", "prob", "probabilities", "probability", "probas", "p_vocab", "next_token_probs", "dist")

_LOGITS = {"logits", "logit"}
_PROBABILITY = {"prob", "probs", "probability", "probabilities", "probas"}
_SAID = (
    (re.compile(r"log[- _]?prob|log[- _]?softmax|log[- _]likelihood", re.IGNORECASE), TAKES[1]),
    (re.compile(r"logits|unnormali[sz]ed", re.IGNORECASE), TAKES[0]),
    (re.compile(r"probabilit|softmax", re.IGNORECASE), TAKES[2]),
)


def domain_of(candidate: Candidate, names: tuple[str, ...]) -> str:
    """Return the domain of the first parameter of these names that its name or the docstring states; else nothing."""
    name = next((one for one in names if one in candidate.parameters), "")
    own = set(words(name))
    if name in LOG_PROBS or ("log" in own and own & _PROBABILITY):
        return TAKES[1]
    if name in PROBS or own & _PROBABILITY:
        return TAKES[2]
    return TAKES[0] if own & _LOGITS else _documented(candidate, name)


def _documented(candidate: Candidate, name: str) -> str:
    """Return the domain that the line of a docstring states that begins with the parameter."""
    text = inspect.getdoc(candidate.thing) or ""
    line = re.search(rf"^\W*{re.escape(name)}\b.*$", text, re.MULTILINE) if name else None
    return next((domain for said, domain in _SAID if line is not None and said.search(line[0])), "")


def as_scores(logits: Tensor, domain: str) -> Tensor:
    """Return logits as scores of a domain.

    Raises NotOffered where rounding takes the order of two of them away, and for a probability that is rounded to 0: of
    such nothing tells whether it was kept.
    """
    if domain == TAKES[0]:
        return logits
    found = logits.log_softmax(-1) if domain == TAKES[1] else logits.softmax(-1)
    order = logits.argsort(-1, descending=True)
    before, after = (x.gather(-1, order).diff() for x in (logits.detach(), found.detach()))
    if bool(((before != 0) != (after != 0)).any()) or bool(found.detach().isnan().any()):
        raise NotOffered(f"logits: two of them are one number as {domain}")
    if domain == TAKES[2] and bool(((found.detach() == 0) & ~logits.detach().isneginf()).any()):
        raise NotOffered("logits: a probability is rounded to 0")
    return found


def domain_note(domain: str) -> tuple[str, ...]:
    """Return a note on what is given in place of the logits that are drawn."""
    if domain == TAKES[0]:
        return ()
    how = {TAKES[1]: "the logarithm of the softmax", TAKES[2]: "the softmax"}[domain]
    return (f"it takes {domain}: it is given {how} of what is drawn",)


def back(found: Tensor, given: Tensor, logits: Tensor, domain: str) -> Tensor:
    """Return as filtered logits what a filter gives for scores of a domain.

    Of log-probabilities a change of what is kept shows; of probabilities, which are often divided by their sum, it is
    only asked which are kept.
    """
    if domain == TAKES[0] or found.shape != logits.shape:
        return found
    nothing = torch.full_like(logits, -torch.inf)
    if domain == TAKES[2]:
        return torch.where(found > 0, logits, nothing)
    return torch.where(found.isneginf(), nothing, logits + (found - given))
