"""The probability of a text, token by token (equation 38)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from veriformer.spec import costs
from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry, whole_numbers
from veriformer.spec.proofs.indexed import dimension, index, sum_over, symbolic_sum, vector, whole
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds, rounds_to
from veriformer.spec.proofs.pullbacks import pullbacks
from veriformer.spec.scores.cross_entropy import cross_entropy, cross_entropy_vjp
from veriformer.spec.scores.cross_entropy_derivation import log_probability
from veriformer.spec.scores.softmax import weight


def next_token_loss(xp: Any, logits: Any, target: NDArray[np.int64]) -> Any:
    """L = −Σ_t log P(x_t | x_{<t}), one number per text: shape [...].

    logits [..., T, V] at position t score target [..., T] at position t: nothing is shifted here.
    """
    return xp.sum(cross_entropy(xp, logits, target, reduction="none"), axis=-1)


def next_token_loss_vjp(xp: Any, logits: Any, target: NDArray[np.int64], g: Any) -> Any:
    """d logits = g (p − y) at every position, for one cotangent g [...] per text."""
    each = xp.broadcast_to(xp.reshape(g, (*target.shape[:-1], 1)), target.shape)
    return cross_entropy_vjp(xp, logits, target, each, reduction="none")[0]


def _joint() -> Any:
    return sp.IndexedBase("F", positive=True)


def _factors(n: Any) -> Any:
    """−Σ_t log P(x_t | x_{<t}) over n tokens, where F_t is the probability of the first t of them."""
    t, joint = sp.Dummy("t", integer=True), _joint()
    return -symbolic_sum(sp.log(joint[t] / joint[t - 1]), t, n)


@step()
def _factorisation() -> Identities:
    r"""The definition $P(x_t | x_{<t}) = F_t / F_{t-1}$ makes the sum telescope: one token more adds $-\log F_{T+1} +
    \log F_T$, and with $F_0 = 1$ one token gives $-\log F_1$. So (38) is $-\log$ of the probability of the whole text,
    without any assumption on it.
    """
    n, joint = dimension("T"), _joint()
    yield _factors(n + 1) - _factors(n), -sp.log(joint[n + 1]) + sp.log(joint[n])
    yield sp.log(joint[0]) + sp.log(joint[1] / joint[0]), sp.log(joint[1])


@step()
def _normalised() -> Identities:
    r"""The continuations of a text by one token share its probability, $\sum_v F_T P(v | x_{\le T}) = F_T$: so all
    texts of one length together have probability one, whatever the logits.
    """
    v, prefix = index("v"), sp.Symbol("P", positive=True)
    yield symbolic_sum(prefix * weight(v), v, dimension("n")), prefix


@step()
def _own_position_only() -> Identities:
    r"""$\partial \mathcal{L} / \partial z_{sk} = p_{sk} - y_{sk}$: the logits of a position learn from the token at
    that position alone, one-hot y, any T and V.
    """
    z, y, (t, j, k, s) = vector("z"), vector("y"), index("t j k s")
    size = dimension("V")
    row = sp.log(symbolic_sum(sp.exp(z[t, j]), j, size)) - symbolic_sum(y[t, j] * z[t, j], j, size)
    gradient = sp.exp(z[s, k]) / symbolic_sum(sp.exp(z[s, j]), j, size) - y[s, k]
    yield sp.diff(symbolic_sum(row, t, dimension("T")), z[s, k]), gradient


@step()
def _surprise() -> Identities:
    r"""The loss of a token, $-\log p$, is 0 at p = 1 and falls with slope $-1/p$, steepest where p is small: a token
    that was given 1% costs $\log 90 = 4.5$ more than one that was given 90%.
    """
    p = sp.Symbol("p", positive=True)
    yield computed(sp.diff, -sp.log(p), p), -1 / p
    yield -sp.log(p) + sp.log(90 * p), sp.log(90)


@step()
def _any_length() -> Identities:
    """The formula computes the statement for each of any number of texts, of any length and over any vocabulary."""
    xp, texts, n, size, b = AnyLength(), dimension("B"), dimension("T"), dimension("V"), index("b")
    x = whole("x", nonnegative=True)
    y = computed(next_token_loss, xp, xp.array("z", texts, n, size), whole_numbers(x, texts, n))
    yield y.then(entry(b)), -sum_over(n, lambda t: log_probability((b, t), x[b, t] + 1, size))


@step()
def _any_vjp() -> Identities:
    """The vector-Jacobian product is the derivative that SymPy takes of the formula, for all sizes."""
    tokens = whole_numbers(whole("x", nonnegative=True), "B", "T")
    yield from pullbacks(next_token_loss, next_token_loss_vjp, {"z": "B T V", "target": tokens})


@step(scope=Scope.NUMERIC, detail="rounded to 6 decimals and to 2, and within half a step of single precision")
def _worked() -> Identities:
    """The printed losses and perplexities: 0.606354 with $e^{0.606354} = 1.833733$, both in all printed digits what
    single precision makes of them, and $e^{3.2068} = 24.70$.
    """
    rows = (("2", "1", "0.1", "-1", "0.5"), ("1.2", "0", "0.3", "2", "-0.2"))
    z = [[sp.Rational(x) for x in row] for row in rows]
    loss = sum(sp.log(sum(map(sp.exp, row))) - row[k] for row, k in zip(z, (0, 3), strict=True)) / 2
    yield rounds_to(loss, "0.606354")
    yield rounds_to(sp.exp(loss), "1.833733")
    # Numbers of single precision are 2^-24 apart below 1, and 2^-23 above.
    yield holds(abs(loss - sp.Rational("0.6063537001609802")) <= sp.Rational(1, 2**25))
    yield holds(abs(sp.exp(loss) - sp.Rational("1.8337328433990479")) <= sp.Rational(1, 2**24))
    yield rounds_to(sp.exp(sp.Rational("3.2068")), "24.70")


@erratum(
    kind="imprecise",
    source=Source("004", "2.2", 142),
    printed=r"\text{the total loss is } -\frac{1}{T} \sum_t \sum_i y_{t,i} \log p_{t,i}",
    corrected=r"\text{that is the mean over tokens; the total of (38) is } T \text{ times as much}",
)
def _sum_or_mean() -> Evidence:
    loss = 2 * sp.log(2)
    return Evidence("T = 2, both tokens with probability 1/2: sum (38) against mean", loss, loss / 2, letters={"T": 2})


@erratum(
    kind="imprecise",
    source=Source("004", "2.2", 151),
    printed=r"\mathcal{L}_{\text{CE}} = -\log p_{t, y_t}",
    corrected=r"\text{that is the loss of one position; as defined above, } \mathcal{L}_{\text{CE}} \text{ is the mean "
    r"of } T \text{ of them}",
)
def _one_of_the_mean() -> Evidence:
    first, second = sp.log(2), sp.log(4)
    return Evidence(
        "T = 2, true tokens of probability 1/2 and 1/4, t = 1", first, (first + second) / 2, letters={"L_CE": 0, "T": 2}
    )


@erratum(
    kind="imprecise",
    source=Source("004", "2.3", 170),
    printed=r"\frac{\partial \mathcal{L}_{\text{CE}}}{\partial z_{t,k}} = p_{t,k} - y_{t,k}",
    corrected=r"\text{that is the gradient of the loss of one position; of the mean } \mathcal{L}_{\text{CE}} \text{ "
    r"it is } \frac{1}{T} (p_{t,k} - y_{t,k})",
)
def _gradient_of_the_mean() -> Evidence:
    xp = Symbolic()
    logits = xp.asarray([[0, 0], [0, 0]])
    actual = cross_entropy_vjp(xp, logits, np.array([0, 1]), xp.asarray(1))[0].value[0, 0]
    half = [sp.Rational(1, 2)] * 2
    return Evidence(
        "T = 2, every probability 1/2, the logit of the true token",
        sp.Rational(1, 2) - 1,
        actual,
        letters={"L_CE": 0, "T": 2, "t": 1, "k": 1, "p": [half, half], "y": [[1, 0], [0, 1]]},
        values=(actual,),
    )


def _sample(rng: np.random.Generator) -> dict[str, Any]:
    shape = (2, int(rng.integers(1, 5)))
    return {"logits": rng.normal(size=(*shape, 4)), "target": rng.integers(0, 4, size=shape)}


EQUATIONS = (
    Equation(
        slug="next-token-loss",
        number="38",
        title="The autoregressive objective",
        statement=r"\mathcal{L} = -\sum_{t=1}^T \log P(x_t | x_1, \ldots, x_{t-1})",
        sources=(Source("002", "8.1", 954), Source("004", "2.1", 123)),
        symbols=(
            Symbol("T", r"\mathbb{N}", "number of scored tokens"),
            Symbol("x_t", r"\{0, \dots, V-1\}", "the token at position t"),
            Symbol("F_t", "(0, 1]", "probability of the first t tokens", "the empty text has 1"),
        ),
        assumptions=(
            Assumption("every token is in the vocabulary", lambda a: bool((a["target"] < a["logits"].shape[-1]).all())),
            Assumption("every logit is a real number", lambda a: bool(np.isfinite(a["logits"]).all())),
        ),
        sample=_sample,
        formula=next_token_loss,
        vjp=next_token_loss_vjp,
        steps=(
            _factorisation,
            _normalised,
            _own_position_only,
            _surprise,
            _any_length,
            _any_vjp,
            _worked,
        ),
        costs=costs.lazily("cross_entropy"),
        errata=(_sum_or_mean, _one_of_the_mean, _gradient_of_the_mean),
    ),
)
