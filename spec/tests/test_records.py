"""Steps and errata as decorators of the functions that prove them."""

import sys

import pytest

from veriformer.spec.equation import ERRATUM_KINDS, Evidence, Scope, Source, erratum, step
from veriformer.spec.registry import equations

HERE = {"source": Source("002", "1", 1), "printed": "0 = 1", "corrected": "0 = 0"}


def test_a_step_takes_its_name_and_claim_from_its_function():
    @step(scope=Scope.ENUMERATED, detail="n = 1")
    def _mean_of_2():
        r"""The mean $\mu$ of two numbers
        is half of their sum.
        """
        yield 1, 2

    assert (_mean_of_2.slug, _mean_of_2.scope, _mean_of_2.scope_detail) == ("mean-of-2", Scope.ENUMERATED, "n = 1")
    assert _mean_of_2.claim == r"The mean $\mu$ of two numbers is half of their sum."
    assert list(_mean_of_2.identity()) == [(1, 2)]


def test_a_step_of_another_name_says_so():
    @step("vjp")
    def _tanh_vjp():
        """The vector-Jacobian product is the derivative."""
        yield 1, 2

    assert (_tanh_vjp.slug, _tanh_vjp.scope) == ("vjp", Scope.ALL)


def test_a_step_without_a_claim_is_refused():
    def _silent():
        yield 1, 2

    with pytest.raises(ValueError, match="step silent: expected its claim"):
        step()(_silent)


def test_a_step_is_found_in_its_module_by_the_name_of_its_function():
    # The sabotage looks there for what a step rests on, and the proof cache tells steps of one slug by that name.
    steps = {s.identity.__qualname__ + s.identity.__module__: s for e in equations() for s in e.steps}
    assert len(steps) == len({s.identity for e in equations() for s in e.steps})
    lost = [s.slug for s in steps.values() if vars(sys.modules[s.identity.__module__])[s.identity.__name__] is not s]
    assert lost == []


@pytest.mark.parametrize("kind", ERRATUM_KINDS)
def test_an_erratum_takes_its_name_from_its_counterexample(kind):
    @erratum(kind=kind, **HERE)
    def _zero_is_not_one():
        return Evidence("anywhere", 1, 0)

    assert (_zero_is_not_one.slug, _zero_is_not_one.kind) == ("zero-is-not-one", kind)
    assert (_zero_is_not_one.source, _zero_is_not_one.printed, _zero_is_not_one.corrected) == tuple(HERE.values())
    assert _zero_is_not_one.counterexample().refutes


def test_an_erratum_of_another_name_says_so():
    assert erratum("other", kind="wrong", **HERE)(lambda: Evidence("", 1, 0)).slug == "other"
