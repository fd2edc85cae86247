"""Beam search with a model: one cache, whose rows follow the texts."""

import torch
from torch import Tensor

from veriformer.impl.generation.beam_search import Step, beam_search
from veriformer.impl.models.decoder import Decoder


@torch.inference_mode()
def generate_beams(
    model: Decoder, start: Tensor, *, beam_width: int, max_length: int, eos: int, length_penalty: float = 0.0
) -> tuple[Tensor, float]:
    """Return the ids and the score of the best text that `beam_search` finds, every token read once."""
    step = cached_step(model, beam_width, max_length)
    return beam_search(
        step, start, beam_width=beam_width, max_length=max_length, eos=eos, length_penalty=length_penalty
    )


def cached_step(model: Decoder, beam_width: int, max_length: int) -> Step:
    """Return a step for `beam_search` that reads only the last token of each text.

    Its cache has a row for each place in the beam. A text goes on from the row that holds it without its last token;
    places that are not in use copy the first.
    """
    kv_cache = model.make_kv_cache(beam_width, max_length)
    held: Tensor | None = None  # [beam_width, t], the text of each row

    def step(ids: Tensor) -> Tensor:
        nonlocal held
        b = ids.shape[0]
        ids = torch.cat((ids, ids[:1].expand(beam_width - b, -1)))
        if held is None:
            new = ids
        else:
            row = (ids[:, None, :-1] == held).all(-1).int().argmax(-1)
            kv_cache.reorder(row)
            new = ids[:, -1:]
        held = ids
        logits: Tensor = model(new, past_key_values=kv_cache).logits
        return logits[:b, -1].log_softmax(-1)

    return step
