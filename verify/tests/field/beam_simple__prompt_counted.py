"""Beam search over lists."""

import torch


def beam_search(step, start, *, beam_width, max_length, eos, length_penalty=0.0):
    first = start.tolist()
    if max_length < len(first):
        raise ValueError("max_length: shorter than start")
    live, finished = [(0.0, first)], []
    for t in range(len(first), max_length):
        logp = step(torch.tensor([ids for _, ids in live])).double().tolist()
        grown = [
            (total + lp, ids + [token])
            for (total, ids), row in zip(live, logp)
            for token, lp in enumerate(row)
            if lp > float("-inf")
        ]
        grown.sort(key=lambda item: -item[0])
        live = []
        for total, ids in grown[:beam_width]:
            (finished if ids[-1] == eos else live).append((total, ids))
        if not live:
            break
    candidates = [(s / len(ids) ** length_penalty, ids) for s, ids in finished + live]
    if not candidates:
        raise ValueError("step: no continuation is possible")
    score, ids = max(candidates, key=lambda item: item[0])
    return torch.tensor(ids), score
