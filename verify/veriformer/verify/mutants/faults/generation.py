"""Faults of filters, greedy choice, beam search and byte-pair encoding."""

from __future__ import annotations

from veriformer.verify.mutants.combinators import Fault, edited

_REACHED = "exact_values(mass_before(xp, logits)) >= exact_values(xp.asarray(p))"
_BEFORE = "xp.concat([xp.asarray(0 * rank[..., :1]), xp.cumsum(falling)[..., :-1]], axis=-1)"
_MERGE = "merged(pieces, min(known, key=lambda pair: ranks[pair]))"


def _stopping(when: str) -> dict[str, Fault]:
    """End beam search after a round although live texts are left, which then do not compete."""
    live = "        live = [h for h in kept if h.ids[-1] != eos]"
    return {"beam_search": edited("beam_search", (live, f"{live}\n        live = [] if finished and {when} else live"))}


FAULTS: dict[str, dict[str, Fault]] = {
    # A token is kept where the mass up to it, its own included, is no more than p.
    "SMP-01": {
        "top_p_filter": edited("top_p_filter", (_BEFORE, "xp.cumsum(falling)"), (_REACHED, _REACHED.replace(">=", ">")))
    },
    # In rising order, those up to which the mass exceeds 1 − p, as the dtype rounds it.
    "SMP-02": {
        "top_p_filter": edited(
            "top_p_filter",
            (_BEFORE, "xp.cumsum(falling[..., ::-1])[..., ::-1]"),
            (_REACHED, "exact_values(mass_before(xp, logits)) <= exact_values(xp.narrow(1 - p))"),
            (" & (rank > 0)", ""),
        )
    },
    # Everything that is tied with the k-th is kept.
    "TOPK-01": {
        "top_k_filter": edited(
            "top_k_filter",
            (
                "    order = np.argsort(",
                "    z = exact_values(x)\n"
                "    return (z[..., None, :] > z[..., :, None]).sum(-1)\n"
                "    order = np.argsort(",
            ),
        )
    },
    # The last of equals.
    "GREEDY-01": {
        "greedy": edited(
            "greedy",
            ("np.argmax(exact_values(x), axis=-1)", "x.shape[-1] - 1 - np.argmax(exact_values(x)[..., ::-1], axis=-1)"),
        )
    },
    "BEAM-01": _stopping("kept[0].ids[-1] == eos"),
    "BEAM-03": _stopping("len(finished) >= beam_width"),
    "BEAM-04": {
        "beam_search": edited("beam_search", ("    length = len(h.ids) - start", "    length = len(h.ids) - start - 1"))
    },
    # Whatever can be merged first from the left is, and then again.
    "TOK-01": {
        "bpe_encode": edited(
            "bpe_encode",
            (
                f"        pieces = {_MERGE}",
                "        at = list(pairwise(pieces)).index(known[0])\n"
                '        pieces = [*pieces[:at], b"".join(known[0]), *pieces[at + 2 :]]',
            ),
        )
    },
    # A pair that is equal to the one before it is not counted.
    "TOK-03": {
        "bpe_train": edited(
            "bpe_train",
            (
                "pair for word in words for pair in pairwise(word)",
                "pair for word in words for pairs in [list(pairwise(word))]"
                " for i, pair in enumerate(pairs) if i == 0 or pair != pairs[i - 1]",
            ),
        )
    },
    # From left to right each piece is merged with the next if any merge says so, until a sweep changes nothing.
    "TOK-07": {
        "bpe_encode": edited(
            "bpe_encode", (_MERGE, "merged(pieces, ranks)"), ("rest[-1]) == pair", "rest[-1]) in pair")
        )
    },
}
