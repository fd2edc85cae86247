"""Byte-pair encoding in pure Python."""


def _merge(parts, pair):
    out, i = [], 0
    while i < len(parts):
        if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
            out.append(parts[i] + parts[i + 1])
            i += 2
        else:
            out.append(parts[i])
            i += 1
    return out


def bpe_train(texts, num_merges):
    words = [[bytes([b]) for b in t.encode("utf-8")] for t in texts]
    merges = []
    for _ in range(num_merges):
        counts = {}
        for w in words:
            for pair in zip(w, w[1:]):
                counts[pair] = counts.get(pair, 0) + 1
        if not counts:
            break
        best = max(counts, key=counts.get)
        merges.append(best)
        words = [_merge(w, best) for w in words]
    return merges


def bpe_encode(text, merges):
    ranks = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(tuple(pair), rank)
    parts = [c.encode("utf-8") for c in text]
    while len(parts) > 1:
        pair = min(zip(parts, parts[1:]), key=lambda p: ranks.get(p, float("inf")))
        if pair not in ranks:
            break
        parts = _merge(parts, pair)
    return parts
