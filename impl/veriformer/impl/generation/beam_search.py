"""Beam search: carry several texts along, and return the best one found."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.generation.topk_mask import topk_mask

Step = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class _Beam:
    """Live texts `ids [b, t]`, best first, and the sums of their log-probabilities `[b]`, in float64."""

    ids: Tensor
    totals: Tensor

    def __getitem__(self, rows: Tensor) -> "_Beam":
        return _Beam(self.ids[rows], self.totals[rows])


@torch.no_grad()
def beam_search(
    step: Step, start: Tensor, *, beam_width: int, max_length: int, eos: int, length_penalty: float = 0.0
) -> tuple[Tensor, float]:
    r"""Find a text of high score, $\frac{1}{n^\alpha} \sum_{t \le n} \log P(x_t \mid x_{<t})$.

    Each round continues all live texts by every token and keeps the `beam_width` best continuations by their plain sums
    (of equal ones the earlier text, then the lower id). Those that end in `eos` leave the beam and are not replaced in
    that round; those alive at `max_length` compete with them. The length n counts generated tokens, `eos` included. The
    search stops early once no live text can still win, given that no log-probability is above 0.

    `step` takes ids `[b, t]` and returns log-probabilities `[b, V]`; a continuation at −∞ is never taken. `start [t]`
    holds integer ids, and `max_length` bounds the result with them. Returns the ids, 1-D int64 with the start and the
    `eos`, and the score. Sums are formed in float64. Raises `ValueError` for a width below 1, a maximum below the
    length of the start, a `step` without a result of the right shape or without any possible continuation, `TypeError`
    for wrong types. Document 003, section 12.
    """
    _check_start(step, start)
    width = checks.integer("beam_width", beam_width, minimum=1)
    last = checks.integer("max_length", max_length, minimum=len(start)) - len(start)
    eos, penalty = checks.integer("eos", eos), checks.finite("length_penalty", length_penalty)
    beam = _Beam(start.long()[None], torch.zeros(1, dtype=torch.float64, device=start.device))
    best, best_score = None if last else beam.ids[0], -torch.inf if last else 0.0
    for n in range(1, last + 1):
        beam = _continued(beam, _log_probabilities(step, beam.ids), width)
        ended = (beam.ids[:, -1] == eos) if n < last else torch.ones_like(beam.totals, dtype=torch.bool)
        if bool(ended.any()):
            scores = _scores(beam.totals[ended], n, penalty)
            if float(scores.max()) > best_score:
                best, best_score = beam.ids[ended][scores.argmax()], float(scores.max())
        beam = beam[~ended]
        if not len(beam.ids) or best_score >= _attainable(beam.totals, n, last, penalty):
            break
    if best is None:
        checks.raise_for("step", "a continuation of positive probability", "none", "every text came to an end at −∞")
    return best, best_score


def _continued(beam: _Beam, log_p: Tensor, width: int) -> _Beam:
    """Return the best continuations of all live texts, best first."""
    V = log_p.shape[-1]
    sums = (beam.totals[:, None] + log_p).flatten()  # [b · V], float64, in the order of texts, then ids
    chosen = (topk_mask(sums, width) & (sums > -torch.inf)).nonzero()[:, 0]
    chosen = chosen[sums[chosen].argsort(descending=True, stable=True)]
    ids = torch.cat([beam.ids[chosen // V], (chosen % V)[:, None]], 1)
    return _Beam(ids, sums[chosen])


def _scores(totals: Tensor, n: int, penalty: float) -> Tensor:
    return totals / torch.tensor(float(n), dtype=torch.float64).pow(penalty)


def _attainable(totals: Tensor, n: int, last: int, penalty: float) -> float:
    """Return what no continuation can exceed: sums do not rise, and lengths end between n and `last`."""
    return max(float(_scores(totals, length, penalty).max()) for length in (n, last))


def _log_probabilities(step: Step, ids: Tensor) -> Tensor:
    log_p = step(ids)
    if not isinstance(log_p, Tensor) or not log_p.is_floating_point():
        got = str(log_p.dtype) if isinstance(log_p, Tensor) else type(log_p).__name__
        checks.raise_for("step", "a function to a floating-point tensor", got, "return log-probabilities", TypeError)
    if log_p.ndim != 2 or len(log_p) != len(ids) or log_p.shape[1] == 0:
        expected, got = f"log-probabilities of shape ({len(ids)}, V)", f"shape {tuple(log_p.shape)}"
        checks.raise_for("step", expected, got, "return one row for each text")
    return log_p


def _check_start(step: Step, start: Tensor) -> None:
    if not callable(step):
        checks.raise_for("step", "a function of ids", type(step).__name__, "pass one", TypeError)
    if not isinstance(start, Tensor):
        checks.raise_for("start", "a torch.Tensor", type(start).__name__, "pass ids", TypeError)
    if start.is_floating_point() or start.is_complex() or start.dtype == torch.bool:
        checks.raise_for("start", "integer ids", start.dtype, "use start.long()", TypeError)
    if start.ndim != 1:
        checks.raise_for("start", "shape [t]", f"shape {tuple(start.shape)}", "search one text at a time")
