"""Batch: independent parts computed alone give equal results."""

from __future__ import annotations

from veriformer.verify.judging.op_info import OpInfo
from veriformer.verify.judging.trial import Trial
from veriformer.verify.laws.agreement import agrees
from veriformer.verify.laws.equality import equal, slice_reference, slice_result
from veriformer.verify.laws.family import over
from veriformer.verify.laws.gradients import draw_cotangent
from veriformer.verify.operations.registry import OPERATIONS


def _batch(operation: OpInfo, trial: Trial) -> None:
    assert operation.batch_slice is not None
    arguments, alone, index = operation.batch_slice(trial)
    references = operation.exact(trial, arguments, use_exact_oracle=False)
    cotangent = draw_cotangent(trial, references[0].exact.shape)
    names = tuple(index.keys() - {"result"})
    whole = trial.call(arguments, wrt=names, cotangent=cotangent)
    single = trial.call(alone, wrt=names, cotangent=cotangent[index["result"]])
    agrees(trial, operation, alone, single, operation.exact(trial, alone, use_exact_oracle=False))
    part = slice_reference(references[0], index["result"])
    equal(trial, slice_result(whole.result, index["result"]), single.result, part, part, "result of the part alone")
    gradients = operation.exact_gradients(trial, arguments, cotangent, use_exact_oracle=False)
    for name in sorted(names):
        part = slice_reference(gradients[name], index[name])
        a, b = slice_result(whole.gradient(name), index[name]), single.gradient(name)
        equal(trial, a, b, part, part, f"gradient of {name} of the part alone")


CHECKS = over(OPERATIONS, "batch", _batch, effort=1.5)
