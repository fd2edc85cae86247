"""The likeliest cut of a text into known pieces."""

import math


def unigram_segment(text, log_probs):
    best = [0.0] + [-math.inf] * len(text)
    back = [0] * (len(text) + 1)
    for end in range(1, len(text) + 1):
        for start in range(end):
            score = best[start] + log_probs.get(text[start:end], -math.inf) * (end - start)
            if score > best[end]:
                best[end], back[end] = score, start
    if best[-1] == -math.inf:
        raise ValueError("text cannot be segmented")
    pieces, end = [], len(text)
    while end:
        pieces.append(text[back[end] : end])
        end = back[end]
    return pieces[::-1]
