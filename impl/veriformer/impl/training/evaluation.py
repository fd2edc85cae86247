"""Evaluation of a model: perplexity by a sliding window, and the temperature that calibrates it."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from veriformer.impl import checks
from veriformer.impl.losses.linear_cross_entropy import linear_cross_entropy
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.training.packing import IGNORED


@torch.inference_mode()
def sliding_perplexity(model: Decoder, tokens: Tensor, *, window: int, stride: int) -> float:
    r"""Return the perplexity of one text `tokens [t]`, each token but the first predicted exactly once (equation 41).

    $$\mathrm{PPL} = \exp\Big(-\frac{1}{t - 1} \sum_{i=2}^{t} \log p(w_i \mid w_{a_i}, \dots, w_{i-1})\Big)$$

    Windows of `window` tokens advance by `stride`; of each, only what no window before has predicted counts. So a token
    has at least `window − stride` tokens before it, or all there are; `stride = window` is the plain cut into rows.
    Raises `ValueError` for a stride outside [1, window] and for fewer than two tokens.
    """
    n = checks.integer("window", window, minimum=1)
    if checks.integer("stride", stride, minimum=1) > n:
        checks.raise_for("stride", f"at most window={n}", stride, "tokens between windows would not be predicted")
    if checks.integers("tokens", tokens).ndim != 1 or len(tokens) < 2:
        checks.raise_for(
            "tokens", "shape [t] with t of 2 or more", f"shape {tuple(tokens.shape)}", "nothing is predicted"
        )
    model.eval()
    total, done, targets = 0.0, 0, len(tokens) - 1
    for start in range(0, targets, stride):
        stop = min(start + n, targets)
        labels = tokens[start + 1 : stop + 1].clone()
        labels[: done - start] = IGNORED
        total += float(_loss(model, tokens[None, start:stop], labels[None]))
        done = stop
        if done == targets:
            break
    return math.exp(total / targets)


def _loss(model: Decoder, ids: Tensor, labels: Tensor) -> Tensor:
    head = model.head
    weight = model.embedding.tokens.weight if head.weight is None else head.weight
    h = head.head_input(model.hidden_states(ids))
    return linear_cross_entropy(h, weight, labels, bias=head.bias, ignore_index=IGNORED, reduction="sum")


@torch.no_grad()
def fit_temperature(logits: Tensor, target: Tensor, *, steps: int = 100) -> float:
    r"""Return the temperature at which `softmax(logits / T)` gives the targets the highest likelihood (section 11.2).

    In $\beta = 1/T$ the loss is convex; its derivative, $\frac1N \sum_i (\mathbb E_p[z_i] - z_{i y_i})$, is monotone,
    and its zero is found by halving, in float64. Shapes: `logits [..., V]`, `target [...]` int64. Raises `ValueError`
    where no finite temperature above 0 is best: all targets have the largest logits, or do no better than chance.
    """
    z = logits.detach().double().reshape(-1, logits.shape[-1])
    y = target.reshape(-1, 1)
    z = z - z.amax(-1, keepdim=True)

    def slope(beta: float) -> float:
        return float(((F.softmax(beta * z, -1) * z).sum(-1, keepdim=True) - z.gather(-1, y)).mean())

    low, high = 0.0, 1.0
    if slope(0.0) >= 0 or not bool(z.gather(-1, y).any()):
        checks.raise_for("target", "targets that a finite temperature fits best", "others", "collect more samples")
    while slope(high) < 0:
        high *= 2
    for _ in range(checks.integer("steps", steps, minimum=1)):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 2 / (low + high)
