"""Speculative decoding: a small model guesses ahead, the large one checks all guesses in one call."""

from typing import cast

import torch
from torch import Tensor

from veriformer.impl import checks
from veriformer.impl.generation.sampling import Choose, Sampling, chooser
from veriformer.impl.models.decoder import Decoder
from veriformer.impl.models.kv_cache import KVCache


@torch.inference_mode()
def speculative(
    model: Decoder,
    draft: Decoder,
    ids: Tensor,
    *,
    max_new_tokens: int,
    guesses: int = 4,
    sampling: Sampling | None = None,
    generator: torch.Generator | None = None,
    choose: Choose | None = None,
) -> Tensor:
    r"""Continue `ids [1, n]` by `max_new_tokens` tokens with the distribution of `model`: int64 `[1, n + new]`.

    A guess $x$ drawn from the draft's $q$ is kept with probability $\min(1, p(x) / q(x))$, and else replaced by a draw
    from $\max(p - q, 0)$, normalised. What comes out is distributed as $p$, since

    $$q(x) \min\Big(1, \frac{p(x)}{q(x)}\Big) + \Big(1 - \sum_y \min(p(y), q(y))\Big)
      \frac{\max(p(x) - q(x), 0)}{\sum_y \max(p(y) - q(y), 0)} = p(x).$$

    When all guesses are kept, one more token comes from the model's own last distribution. `sampling` shapes both
    distributions; `choose` draws an index from probabilities (by default with `generator`). Raises `ValueError` for
    more than one row, different vocabularies and windows, whose caches take no tokens back. Leviathan et al. (2023).
    """
    if ids.ndim != 2 or len(ids) != 1:
        checks.raise_for("ids", "shape [1, n]", f"shape {tuple(ids.shape)}", "speculate on one text at a time")
    if draft.config.vocab_size != model.config.vocab_size:
        got = draft.config.vocab_size
        checks.raise_for("draft", f"a vocabulary of {model.config.vocab_size}", got, "use the same tokenizer")
    shape, choose = sampling or Sampling(), choose or chooser(generator)
    stop = ids.shape[1] + checks.integer("max_new_tokens", max_new_tokens, minimum=0)
    sure, quick = (m.make_kv_cache(1, stop + checks.integer("guesses", guesses, minimum=1)) for m in (model, draft))
    text = ids
    while text.shape[1] < stop:
        n = text.shape[1]
        guessed, q = _guess(draft, text, quick, min(guesses, stop - n - 1), shape, choose)
        p = shape.probabilities(_read(model, guessed, sure)[0, n - 1 - guessed.shape[1] :])  # [g + 1, V]
        kept, token = accept(p, q, guessed[0, n:], choose)
        text = torch.cat((guessed[:, : n + kept], torch.tensor([[token]], device=ids.device)), 1)
        for kv_cache in (sure, quick):
            kv_cache.rewind(min(kv_cache.length, n + kept))
    return text


def accept(p: Tensor, q: Tensor, guesses: Tensor, choose: Choose) -> tuple[int, int]:
    """Return how many guesses are kept, and the token that follows them.

    `p [g + 1, V]` and `q [g, V]` are the distributions of model and draft before each guess, `guesses [g]`.
    """
    for i, x in enumerate(guesses.tolist()):
        keep = (p[i, x] / q[i, x]).clamp(max=1)
        if choose(torch.stack((1 - keep, keep))) == 0:
            return i, choose(residual(p[i], q[i]))
    return len(guesses), choose(p[-1])


def residual(p: Tensor, q: Tensor) -> Tensor:
    """Return the normalised part of `p` that lies above `q`."""
    rest = (p - q).clamp(min=0)
    return rest / rest.sum()


def _guess(
    draft: Decoder, text: Tensor, kv_cache: KVCache, count: int, shape: Sampling, choose: Choose
) -> tuple[Tensor, Tensor]:
    """Return the text with `count` guesses, and the distributions they came from, `[count, V]`."""
    q = []
    for _ in range(count):
        q.append(shape.probabilities(_read(draft, text, kv_cache)[0, -1]))
        text = torch.cat((text, torch.tensor([[choose(q[-1])]], device=text.device)), 1)
    return text, torch.stack(q) if q else torch.empty(0, device=text.device)


def _read(model: Decoder, text: Tensor, kv_cache: KVCache) -> Tensor:
    """Return the logits of all that the cache has not seen of the text, at least of its last token."""
    return cast(Tensor, model(text[:, kv_cache.length :], past_key_values=kv_cache).logits)
