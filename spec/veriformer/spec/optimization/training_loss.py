"""The loss that a training loop prints: a mean of batch means, and by what it is divided (document 004, 4.4)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from veriformer.spec import costs
from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.arithmetic.lazy_sympy import sp
from veriformer.spec.equation import Assumption, Equation, Evidence, Identities, Scope, Source, Symbol, erratum, step
from veriformer.spec.proofs.any_length import AnyLength, entry
from veriformer.spec.proofs.indexed import dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.provenance import computed
from veriformer.spec.proofs.published import holds, rounds_to

_PRINTED = ("0.4878", "0.3715", "0.2676", "0.1982", "0.1702")


def epoch_loss(xp: Any, losses: Any) -> Any:
    """The mean loss of an epoch, from the mean losses [K] of its K batches of one size."""
    return xp.sum(losses, axis=0) / losses.shape[0]


@step()
def _mean_of_means() -> Identities:
    """With batches of one size the mean over everything is the mean of the batch means."""
    (i, k), (n, batches), loss = index("i k"), (dimension("n"), dimension("K")), vector("l")
    mean = symbolic_sum(symbolic_sum(loss[k, i], i, n) / n, k, batches) / batches
    yield mean, symbolic_sum(symbolic_sum(loss[k, i], i, n), k, batches) / (n * batches)


@step()
def _any_number() -> Identities:
    """The formula computes the mean of the batch means, for any number of batches."""
    xp, k, batches = AnyLength(), index("k"), dimension("K")
    found = computed(epoch_loss, xp, xp.array("l", batches)).then(entry())
    yield found, symbolic_sum(vector("l")[k], k, batches) / batches


@step()
def _divided_by_sequences() -> Identities:
    """The sum of the K batch means divided by the number $K n$ of sequences, as the loop does, is the mean loss divided
    by n once more.
    """
    (i, k), (n, batches), loss = index("i k"), (dimension("n"), dimension("K")), vector("l")
    printed = symbolic_sum(symbolic_sum(loss[k, i], i, n) / n, k, batches) / (n * batches)
    yield printed, symbolic_sum(symbolic_sum(loss[k, i], i, n), k, batches) / (n * batches) / n


@step(scope=Scope.NUMERIC, detail="the printed digits")
def _printed() -> Identities:
    """The five printed losses do fall, as the text says; the mean losses are 16 times as large, from 7.80 to 2.72."""
    values = [sp.Rational(text) for text in _PRINTED]
    yield holds(all(after < before for before, after in pairwise(values)))
    yield rounds_to(16 * values[0], "7.80")
    yield rounds_to(16 * values[-1], "2.72")


@erratum(
    kind="wrong",
    source=Source("004", "4.4", 562),
    printed=r"\text{losses.append(total_loss / len(input_ids))} \quad \text{(Average Loss)}",
    corrected=r"\text{divide by the number of batches, since total_loss sums batch means}",
)
def _divided_twice() -> Evidence:
    xp = Symbolic()
    losses = xp.asarray([1] * 16)
    printed = xp.sum(losses).value[()] / 256
    return Evidence("16 batches of 16 sequences, each of mean loss 1", printed, epoch_loss(xp, losses).value[()])


@erratum(
    kind="wrong",
    source=Source("004", "4.5", 591),
    printed=r"\text{Evaluate Perplexity on Validation Samples: model(input_ids[:32])}",
    corrected=r"\text{the first 32 of the 256 sequences that were trained on: it is a training loss}",
)
def _validated_on_training_data() -> Evidence:
    trained, evaluated = np.arange(256), np.arange(256)[:32]
    seen = int(np.isin(evaluated, trained).sum())
    return Evidence("of the 32 sequences evaluated: those that the loop trained on", 0, seen)


EQUATIONS = (
    Equation(
        slug="training-loss",
        number=None,
        title="The mean loss of an epoch",
        statement=r"\text{losses.append(total_loss / len(input_ids))}",
        sources=(Source("004", "4.4", 562), Source("004", "4.4", 573), Source("004", "4.4", 587)),
        symbols=(
            Symbol("K", r"\mathbb{N}", "the number of batches", "16 in the example"),
            Symbol("n", r"\mathbb{N}", "the number of sequences in a batch", "16 in the example"),
        ),
        assumptions=(Assumption("there is a batch", lambda a: len(a["losses"]) > 0),),
        sample=lambda rng: {"losses": rng.uniform(0, 10, size=int(rng.integers(1, 6)))},
        formula=epoch_loss,
        steps=(_mean_of_means, _any_number, _divided_by_sequences, _printed),
        costs=costs.lazily("cross_entropy"),
        errata=(_divided_twice, _validated_on_training_data),
    ),
)
