"""Mutated formulas: whatever is held against something for all n is noticed, by the steps for all n alone."""

import inspect
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from veriformer.spec.equation import Scope
from veriformer.spec.formula_reach import functions, names
from veriformer.spec.proofs.provenance import Computed, named
from veriformer.spec.proofs.prover import prove
from veriformer.spec.registry import equations
from veriformer.spec.sabotage.mutation import mutations

OPERATORS = ("sign", "operands", "dropped", "minus-dropped", "function", "comparison")
MOST = 3
SLOW = {"transformer_block", "attention_sublayer", "attention_vjp"}
"""Formulas whose steps take seconds."""

FEW = {
    *("transformer_block_vjp", "decoder_block", "multi_head_attention_vjp", "cached_attention_vjp"),
    *("linear_attention_vjp", "mixture_of_experts", "mixture_of_experts_vjp", "swiglu_vjp", "sandwich"),
    *("alibi_bias", "alibi_slopes", "t5_bias", "t5_bias_vjp", "int8_round_trip", "largest_inner_product"),
    *("adam_step_bound", "warming_average", "corrected_average", "accumulate_gradients", "warmup_cosine"),
    *("scaling_factor", "descend_parabola", "expected_calibration_error"),
}
"""Formulas that no step holds against anything for all n: small sizes and numbers are all there is."""

ANY_NUMBER = "whatever number stands for the largest, the result is the same"
NO_INFINITY = "a letter is a real number, never infinite"
UNSEEN = {
    "formula:scores/softmax.py:softmax:sign:1": ANY_NUMBER,
    "formula:scores/softmax.py:softmax:dropped:1": ANY_NUMBER,
    "formula:attention/causal_mask.py:masked_softmax:sign:1": ANY_NUMBER,
    "formula:attention/causal_mask.py:masked_softmax:dropped:1": ANY_NUMBER,
    "formula:generation/temperature_scale.py:temperature_scale:sign:2": ANY_NUMBER,
    "formula:scores/logsumexp.py:logsumexp:minus-dropped:1": NO_INFINITY,
    "formula:attention/attention.py:_forward:minus-dropped:1": NO_INFINITY,
    "formula:attention/online_softmax.py:finish:minus-dropped:1": NO_INFINITY,
    "formula:vectors/distances.py:euclidean_distance:operands:1": "a difference is squared",
    "formula:optimization/noam.py:noam:comparison:1": "at the end of warmup both branches are the same",
}
"""Mutations that the steps for all n let pass, and why."""


@cache
def steps_of(function):
    """The steps that hold a function against something else on arrays of any length."""
    own = [s for e in equations() if function in (e.formula, e.vjp) for s in e.steps]
    named_in = [s for s in dict.fromkeys(own) if s.scope is Scope.ALL and function in functions(s)]
    return [s for s in named_in if any(runs(function, sides) for sides in s.identity())]


def runs(function, sides):
    computed = [s for s in sides if isinstance(s, Computed) and "AnyLength()" in s.inputs]
    return any(s.origin == named(function) for s in computed)


def reached(function):
    """The function, and those of its module that it calls with the arithmetic."""
    found, waiting = {}, [function]
    while waiting:
        f = waiting.pop()
        if f not in found:
            found[f] = None
            called = (f.__globals__.get(name) for name in names(f.__code__))
            waiting += [g for g in called if isinstance(g, FunctionType) and g.__module__ == function.__module__]
    return [f for f in found if f.__code__.co_varnames[:1] == ("xp",)]


def stated():
    """Formulas with their own mutations; of a gradient, those of what the formula does not call as well."""
    found = {}
    for e in equations():
        if e.formula:
            found.setdefault(e.formula, reached(e.formula))
        if e.vjp:
            found.setdefault(e.vjp, [f for f in reached(e.vjp) if f not in reached(e.formula)])
    return found


@cache
def mutations_of(file):
    return [m for m in mutations(file) if m.kind == "formula" and m.name.split(":")[3] in OPERATORS]


def chosen(function, parts):
    if function.__name__ in SLOW | FEW:
        return []
    all_of = [(f, m) for f in parts for m in mutations_of(Path(inspect.getsourcefile(f))) if m.owner == f.__name__]
    apart = max(1, len(all_of) // MOST)
    return all_of[::apart][:MOST]


CASES = [
    pytest.param(f, p, m, id=f"{f.__name__}-{m.name}") for f, parts in stated().items() for p, m in chosen(f, parts)
]


@contextmanager
def mutated(function, mutation):
    code = compile(mutation.applied(), mutation.file, "exec")
    (new,) = (c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == function.__name__)
    old, function.__code__ = function.__code__, new
    try:
        yield
    finally:
        function.__code__ = old


def holds(step):
    try:
        return prove(step, cached=False).holds
    except Exception:
        return False


@pytest.mark.whole
@pytest.mark.parametrize(("function", "part", "mutation"), CASES)
def test_a_mutated_formula_is_noticed_by_its_steps_for_all_n(function, part, mutation):
    steps = steps_of(function)
    assert steps
    with mutated(part, mutation):
        noticed = any(not holds(s) for s in steps)
    assert noticed is (mutation.name not in UNSEEN), UNSEEN.get(mutation.name, str(mutation))


@pytest.mark.whole
def test_what_is_held_at_few_sizes_only_is_listed():
    assert {f.__name__ for f in stated() if f.__name__ not in SLOW and not steps_of(f)} == FEW
