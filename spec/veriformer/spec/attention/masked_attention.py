"""Masked attention: causal masks, windows and boolean masks (equation 24a)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Float
from veriformer.spec.arithmetic.any_size import everywhere
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.attention.causal_mask import causal_mask, masked_softmax, masked_softmax_vjp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, at_least_zero, entry, mask, seen
from veriformer.spec.proofs.identities import entrywise
from veriformer.spec.proofs.indexed import dimension, index, positive, real, sum_over, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.pullbacks import pullbacks, vjp_step
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic
from veriformer.spec.scores.softmax import softmax_vjp


def _sums() -> tuple[Any, Any]:
    """Σ e^s over visible keys (b = 1) and over hidden ones (b = 0), for any number of keys."""
    s, b, j, n = vector("s"), vector("b"), sp.Dummy("j", integer=True), dimension("n")
    return symbolic_sum(b[j] * sp.exp(s[j]), j, n), symbolic_sum((1 - b[j]) * sp.exp(s[j]), j, n)


@step()
def _limit() -> Identities:
    r"""Adding a number to the hidden scores multiplies their exponentials by w. The weights then differ from those over
    visible keys alone by exactly $w$ times a bounded term, so they agree as $w \to 0$, that is for −∞: provided that
    something is visible.
    """
    s, b, i, w = vector("s"), vector("b"), index("i"), positive("w")
    seen, hidden = _sums()
    added = sp.exp(s[i]) * (b[i] + (1 - b[i]) * w) / (seen + w * hidden)
    masked = sp.exp(s[i]) * b[i] / seen
    yield added - masked, w * sp.exp(s[i]) * ((1 - b[i]) * seen - b[i] * hidden) / (seen * (seen + w * hidden))


@step()
def _sums_to_one() -> Identities:
    """The weights of the visible keys sum to one."""
    s, b, i = vector("s"), vector("b"), index("i")
    yield symbolic_sum(b[i] * sp.exp(s[i]) / _sums()[0], i, dimension("n")), 1


@step()
def _any_length() -> Identities:
    """The formula computes softmax over the visible keys, and 0 at hidden ones, for all sizes and any mask b that lets
    the row see something; a row whose keys are all hidden is 0 throughout.
    """
    xp, (i, j), n_q, n_k = AnyLength(), index("i j"), dimension("n_q"), dimension("n_k")
    s, scores, b = vector("s"), xp.array("s", n_q, n_k), seen("b")
    weights = computed(masked_softmax, xp, scores, mask("b", n_q, n_k))
    printed = b(i, j) * sp.exp(s[i, j]) / sum_over(n_k, lambda k: b(i, k) * sp.exp(s[i, k]))
    yield weights.then(entry(i, j)), printed
    yield computed(masked_softmax, xp, scores, ~everywhere(n_q, n_k)).then(entry(i, j)), 0


@step()
def _any_causal_mask() -> Identities:
    r"""The causal mask shows query i the keys $j \le i + n_k - n_q$, and with a window w of these the last w, $j > i +
    n_k - n_q - w$, for all sizes.
    """
    (i, j), n_q, n_k, w = index("i j"), dimension("n_q"), dimension("n_k"), dimension("w")
    last = i + n_k - n_q
    whole, window = (computed(causal_mask, n_q, n_k, window=width) for width in (None, w))
    yield whole.then(lambda see: see.entry(i, j)), at_least_zero(last - j)
    yield window.then(lambda see: see.entry(i, j)), at_least_zero(last - j) * at_least_zero(j - 1 - (last - w))


@step(scope=Scope.ENUMERATED, detail="every mask of one row of n ≤ 3 keys, and of two rows of 2")
def _visible_only() -> Identities:
    """The formula is softmax over the visible keys, 0 at hidden ones, and 0 throughout a row that sees nothing (there
    the statement is 0/0; zero is this project's convention).
    """
    for rows, n in ((1, 1), (1, 2), (1, 3), (2, 2)):
        for flat in product((False, True), repeat=rows * n):
            xp, see = TowerArithmetic(), np.reshape(flat, (rows, n))
            s = xp.symbols("s", rows, n)
            found = masked_softmax(xp, s, see).value
            for i in range(rows):
                seen = sum(sp.exp(e) for e, v in zip(s.value[i], see[i], strict=True) if v)
                printed = [sp.exp(e) / seen if v else sp.S.Zero for e, v in zip(s.value[i], see[i], strict=True)]
                yield from entrywise([xp.in_full(p) for p in found[i]], printed)


def _causal_sizes() -> Iterator[tuple[int, int]]:
    return ((n_q, n_k) for n_q in range(1, 4) for n_k in range(n_q, 4))


@step(scope=Scope.ENUMERATED, detail="n_q ≤ n_k ≤ 3")
def _causality() -> Identities:
    """Under the causal mask, query i is softmax over its first $i + 1 + n_k - n_q$ keys as if the rest did not
    exist.
    """
    for n_q, n_k in _causal_sizes():
        xp = TowerArithmetic()
        s = xp.symbols("s", n_q, n_k)
        p = masked_softmax(xp, s, causal_mask(n_q, n_k)).value
        for i in range(n_q):
            past = s.value[i, : i + 1 + n_k - n_q]
            printed = [sp.exp(e) / sum(map(sp.exp, past)) for e in past]
            yield from entrywise([xp.in_full(e) for e in p[i, : len(past)]], printed)
            yield from entrywise(p[i, len(past) :], [0] * (n_k - len(past)))


@step()
def _visible_pairs() -> Identities:
    """A causal mask leaves $n_q n_k - n_q (n_q - 1) / 2$ pairs, about half; with a window of w they are $n w - w (w -
    1) / 2$, linear in n.
    """
    i, n_q, n_k = index("i"), costs.symbol("n_q"), costs.symbol("n_k")
    yield symbolic_sum(i + n_k - n_q, i, n_q), costs.causal_pairs()
    n, w = costs.symbol("n"), costs.symbol("w")
    # A window of w on n ≥ w positions: the first w rows see 1 … w keys, the other n − w rows see w.
    yield symbolic_sum(i, i, w) + (n - w) * w, n * w - w * (w - 1) / 2


_any_vjp = vjp_step(lambda: pullbacks(masked_softmax, masked_softmax_vjp, {"s": "m n", "see": mask("b", "m", "n")}))


@erratum(
    kind="convention",
    source=Source("002", "5.4", 666),
    printed=r"\text{Instead of } -\infty \text{, use large negative values (e.g., } -10^9 \text{)}",
    corrected=r"\text{hide with } -\infty \text{ and give rows without a visible key the value 0}",
)
def _large_negative_numbers() -> Evidence:
    s = [real("s") - 10**9] * 2
    claimed = sp.simplify(sp.exp(s[0]) / (sp.exp(s[0]) + sp.exp(s[1])))
    xp = TowerArithmetic()
    actual = masked_softmax(xp, xp.asarray([real("s")] * 2), np.zeros(2, dtype=bool)).value[0]
    return Evidence(
        "two keys of equal score, both hidden by adding -1e9: the weight of the first",
        claimed,
        actual,
        letters={},
        values=(-sp.oo,),
    )


@erratum(
    kind="imprecise",
    source=Source("002", "5.4", 666),
    printed=r"\text{to prevent NaN gradients}",
    corrected=r"-\infty \text{ gives NaN only in rows that see nothing, which a causal mask never has}",
)
def _no_nan_to_prevent() -> Evidence:
    xp = Float()
    gradient = softmax_vjp(xp, xp.asarray([0.5, -math.inf]), xp.asarray([1.0, 2.0])).value
    nan = bool(np.isnan(gradient).any())
    return Evidence(
        "scores (0.5, -∞) and cotangent (1, 2) in fp64: is the gradient NaN somewhere",
        True,
        nan,
        letters={},
        values=(-sp.oo,),
    )


@erratum(
    kind="convention",
    source=Source("002", "5.4", 661),
    printed=r"\frac{QK^T + M}{\sqrt{d_k}}",
    corrected=r"\frac{QK^T}{\sqrt{d_k}} + M \text{, the same for } M_{ij} \in \{0, -\infty\} \text{ only}",
)
def _bias_under_the_root() -> Evidence:
    s, bias, d_k = 2, 3, 4
    q, k, masks = np.array([[s, 0, 0, 0]]), np.eye(4, dtype=int)[[0, 0, 0]], [bias, 0, -sp.oo]
    scaled = np.array([[s / sp.sqrt(d_k) + m for m in masks]])

    def alike(letters: Any) -> bool:
        m = masks[letters["j"] - 1]
        return bool((s + m) / sp.sqrt(d_k) == s / sp.sqrt(d_k) + m)

    return Evidence(
        "d_k = 4, a score q·k = 2 and a finite bias M = 3, such as ALiBi's or a learned one",
        sp.Rational(s + bias) / sp.sqrt(d_k),
        s / sp.sqrt(d_k) + bias,
        letters={"Q": q, "K": k, "M": np.array([masks]), "d_k": d_k, "i": 1, "j": range(1, 4)},
        values=(scaled, alike),
    )


@erratum(
    kind="convention",
    source=Source("002", "5.4", 664),
    printed=r"M_{ij} = -\infty \text{ if } i < j",
    corrected=r"M_{ij} = -\infty \text{ if } j > i + n_k - n_q \text{, the same for as many queries as keys}",
)
def _causal_mask_of_a_rectangle() -> Evidence:
    printed = sum(j <= 0 for j in range(3))
    return Evidence(
        "one new query (i = 0) over three keys: keys it sees",
        printed,
        int(causal_mask(1, 3).sum()),
        letters={"M": np.where(causal_mask(2, 3), 0, -sp.oo), "i": range(1, 3), "j": range(1, 4), "n_q": 2, "n_k": 3},
    )


@erratum(
    kind="contradictory",
    source=Source("002", "5.2", 678),
    printed=r"\text{(24) is printed twice, in sections 5.4 and 5.2}",
    corrected=r"\text{24a is the masked softmax, 24b the variance of the scores}",
)
def _two_equations_24() -> Evidence:
    d_k = 4
    masked = TowerArithmetic()
    weights = masked_softmax(masked, masked.asarray([[0, 0]]), np.ones((1, 2), dtype=bool)).value[0, 0]
    return Evidence('"(24)" at d_k = 4, σ = 1, zero scores', masked.in_full(weights), sp.Integer(d_k))


@erratum(
    kind="convention",
    source=Source("003", "8, Decoder-Only: GPT Family", 659),
    printed=r"\text{mask}_{ij} = 1 \text{ if } j \le i \text{, else } -\infty \text{ (as returned)}",
    corrected=r"\text{mask}_{ij} = 0 \text{ if } j \le i \text{, else } -\infty \text{, as in line 946; "
    r"added to scores, a 1 in all visible places changes no weight}",
)
def _mask_of_ones() -> Evidence:
    lower = np.tril(np.ones((2, 2)))
    returned = np.where(lower == 0, -math.inf, lower)
    return Evidence(
        "n = 2, the pair i = j = 0, by line 946 and by the code of line 659",
        0,
        int(returned[0, 0]),
        letters={"mask": np.where(causal_mask(3, 3), 0, -sp.oo), "i": range(1, 4), "j": range(1, 4)},
        values=(-sp.oo,),
    )


@erratum(
    kind="contradictory",
    source=Source("003", "8, Decoder-Only: GPT Family", 633),
    printed=r"\text{each position only attends to previous positions}",
    corrected=r"\text{to itself and to previous ones, as by line 647: } A_{ij} = 0 \text{ for } j > i \text{ alone}",
)
def _also_to_itself() -> Evidence:
    return Evidence(
        "three tokens, the first one: positions that it attends to",
        0,
        int(causal_mask(3, 3)[0].sum()),
        letters={"A": np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=object), "i": 1, "j": range(2, 4)},
    )


@erratum(
    kind="wrong",
    source=Source("004", "4.3", 532),
    printed=r"\text{out = self.encoder(h), trained to predict the next token}",
    corrected=r"\text{with a causal mask; without one each position sees the token that it is to predict}",
)
def _encoder_without_a_mask() -> Evidence:
    xp = Float()
    seen = [
        masked_softmax(xp, xp.asarray(np.zeros((2, 2))), see).value[0, 1]
        for see in (causal_mask(2, 2), np.ones((2, 2), dtype=bool))
    ]
    point = "n = 2, equal scores: the weight of token 1, the target of position 0, in the prediction of position 0"
    return Evidence(point, *map(float, seen))


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    n_q, n_k = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    return {"s": rng.normal(size=(n_q, n_k)), "see": rng.random((n_q, n_k)) < 0.8}


EQUATIONS = (
    Equation(
        slug="masked-attention",
        number="24a",
        title="Masked attention",
        statement=r"P = \text{softmax}\left(\frac{QK^T + M}{\sqrt{d_k}}\right)",
        sources=(Source("002", "5.4", 661), Source("003", "9, Multi-Head Attention Mathematical Formulation", 945)),
        symbols=(
            Symbol("M", r"\{0, -\infty\}^{n_q \times n_k}", "the mask: −∞ hides a key from a query"),
            Symbol(r"\mathbf{b}", r"\{0, 1\}^n", "one row of the mask as visibility: 1 where M = 0"),
            Symbol("w", r"\mathbb{R}_{>0}", "the factor that a finite mask value leaves, e to the value over the root"),
        ),
        assumptions=(
            Assumption("visible scores are real numbers", lambda a: bool(np.isfinite(a["s"][a["see"]]).all())),
            Assumption("the mask has a row per query and a column per key", lambda a: a["s"].shape == a["see"].shape),
        ),
        sample=_sample,
        formula=masked_softmax,
        vjp=masked_softmax_vjp,
        steps=(
            _limit,
            _sums_to_one,
            _any_length,
            _any_causal_mask,
            _visible_only,
            _causality,
            _visible_pairs,
            _any_vjp,
        ),
        costs={"visible pairs": costs.causal_pairs, "pairs in visible blocks": costs.causal_block_pairs},
        errata=(
            _large_negative_numbers,
            _no_nan_to_prevent,
            _bias_under_the_root,
            _causal_mask_of_a_rectangle,
            _two_equations_24,
            _mask_of_ones,
            _also_to_itself,
            _encoder_without_a_mask,
        ),
    ),
)
