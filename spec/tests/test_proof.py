"""The prover: what it proves, what it refuses, and how long it remembers."""

import importlib.util
import sys

import pytest
import sympy as sp

from veriformer.spec.equation import Erratum, Evidence, Scope, Source, Step
from veriformer.spec.proofs import proof_cache
from veriformer.spec.proofs.algebra import is_identically_zero
from veriformer.spec.proofs.counterexample import numeric_counterexample
from veriformer.spec.proofs.indexed import delta, dimension, index, symbolic_sum, vector
from veriformer.spec.proofs.prover import holds, prove, prove_all, sabotaged
from veriformer.spec.proofs.sums import tidy
from veriformer.spec.proofs.tower_arithmetic import TowerArithmetic, entries
from veriformer.spec.registry import UnknownEquationError, equations, select

A, B, C = sp.symbols("a b c", real=True)
P, Q = sp.symbols("p q", positive=True)
X, Y = vector("x"), vector("y")
I, J, K = index("i j k")
N, M = dimension("n"), dimension("m")


def step(*pairs, scope=Scope.ALL):
    return Step(slug="made-up", claim="", identity=lambda: pairs, scope=scope)


TRUE = {
    "rational": (1 / (1 / A + 1 / B), A * B / (A + B)),
    "exponentials": (sp.exp(A - B) * sp.exp(2 * B), sp.exp(A) * sp.exp(B)),
    "half exponents": ((sp.exp(A / 2) + 1) * (sp.exp(A / 2) - 1), sp.exp(A) - 1),
    "logarithm of a product": (sp.log(sp.exp(A) * P / Q), A + sp.log(P) - sp.log(Q)),
    "logarithm of a sum": (sp.log(sp.exp(A + C) + sp.exp(B + C)), C + sp.log(sp.exp(A) + sp.exp(B))),
    "exponential of a logarithm": (sp.exp(A - 2 * sp.log(P + Q)) * (P**2 + 2 * P * Q + Q**2), sp.exp(A)),
    "roots": ((sp.sqrt(P + Q) + 1) * (sp.sqrt(P + Q) - 1), P + Q - 1),
    "two roots": ((sp.sqrt(P + 1) + sp.sqrt(Q + 1)) ** 2, P + Q + 2 + 2 * sp.sqrt(P + 1) * sp.sqrt(Q + 1)),
    "same root": (sp.sqrt(P + 2 * P * Q + P), sp.sqrt(2 * P * (1 + Q))),
    "root of a square": (sp.sqrt(P**2 * Q + P**2), P * sp.sqrt(Q + 1)),
    "numbers under roots": ((A / sp.sqrt(3) + 1) ** 2, A**2 / 3 + 2 * A / sp.sqrt(3) + 1),
    "symbolic powers": (P**A * P**B, P ** (A + B)),
    "smallest": (sp.Min(1, (P + Q) / P) * A, A),
    "largest": (sp.Max(P / Q, (P + Q) / Q), P / Q + 1),
    "functions": (sp.tanh(A + B) ** 2 - 1, (sp.tanh(B + A) - 1) * (sp.tanh(A + B) + 1)),
    "sum of a constant": (symbolic_sum(A, I, N), A * N),
    "linear": (symbolic_sum(A * X[I] + Y[I], I, N), A * symbolic_sum(X[J], J, N) + symbolic_sum(Y[J], J, N)),
    "contraction": (symbolic_sum(X[I] * delta(I, J), I, N), X[J]),
    "cases": (delta(I, J) * X[I], delta(I, J) * X[J]),
    "exchange": (
        symbolic_sum(symbolic_sum(X[I, J] * Y[J], I, N), J, M),
        symbolic_sum(Y[I] * symbolic_sum(X[J, I], J, N), I, M),
    ),
    "one more": (symbolic_sum(X[I], I, N + 1) - symbolic_sum(X[I], I, N), X[N + 1]),
    "powers of the index": (symbolic_sum(I, I, N), N * (N + 1) / 2),
    "square of a sum": (symbolic_sum(symbolic_sum(X[I] * X[J], I, N), J, N), symbolic_sum(X[I], I, N) ** 2),
    "derivative of a sum": (sp.diff(symbolic_sum(X[I] ** 2, I, N), X[K]), 2 * X[K]),
}


@pytest.mark.parametrize("name", TRUE)
def test_true_identities_are_proved_and_their_sabotage_is_refused(name):
    made_up = step(TRUE[name])
    assert prove(made_up, cached=False).status == "proved"
    variants = list(sabotaged(made_up))
    assert len(variants) == 3
    assert [v.slug for v in variants if prove(v, cached=False).holds] == []
    assert [holds(one) for one in (made_up, *variants)] == [True, False, False, False]


FALSE = {
    "sign": (sp.exp(A - B), sp.exp(B - A)),
    "index": (symbolic_sum(X[I] * Y[I], I, N), symbolic_sum(X[I], I, N) * symbolic_sum(Y[J], J, N)),
    "transposed": (symbolic_sum(X[I, J], J, N), symbolic_sum(X[J, I], J, N)),
    "off the diagonal": (delta(I, J), sp.S.One),
    "root": (sp.sqrt(P + Q), sp.sqrt(P) + sp.sqrt(Q)),
    "even and odd powers of a root": (sp.sqrt(P + Q), sp.S.One),
    "logarithm": (sp.log(P + Q), sp.log(P) + sp.log(Q)),
    "logarithm of negative numbers": (sp.log(A * B), sp.log(A) + sp.log(B)),
    "one term too many": (symbolic_sum(X[I], I, N + 1), symbolic_sum(X[I], I, N)),
    "smallest": (sp.Min(1, P), P),
}


@pytest.mark.parametrize("name", FALSE)
def test_false_identities_are_refuted_at_a_point(name):
    left, right = FALSE[name]
    verdict = prove(step((left, right)), cached=False)
    assert verdict.status == "refuted"
    assert "against" in verdict.detail
    assert not is_identically_zero(left - right)


def test_the_point_tells_the_values():
    assert numeric_counterexample(A + 1, A) is not None
    assert "a = " in numeric_counterexample(A + 1, A)
    assert numeric_counterexample(A, A + 0) is None


def test_zero_is_not_negated_or_doubled():
    made_up = step((A + B, B + 2 * A - A), (A - sp.sqrt(A**2 + 1), A - sp.sqrt(1 + A**2)), (P, P * (Q + 1) - P * Q))
    zero = step(
        (symbolic_sum(X[I] - X[I], I, N), sp.S.Zero), ((A + 1) ** 2, A**2 + 2 * A + 1), (A, A * (B + 1) - A * B)
    )
    assert len(list(sabotaged(made_up))) == 9
    assert [v.slug.split(":")[2] for v in sabotaged(zero)].count("negated") == 2


def test_every_identity_counts():
    assert prove(step((A * (A + 1), A**2 + A), (A, B)), cached=False).status == "refuted"


@pytest.mark.parametrize("pairs", [(), ((sp.S.Zero, sp.S.Zero),), ((A, A), (B, B))])
def test_steps_that_say_nothing_are_refused(pairs):
    verdict = prove(step(*pairs), cached=False)
    assert verdict.status == "vacuous"
    assert not verdict.holds


def test_what_is_true_but_beyond_the_normal_form_is_not_called_proved():
    verdict = prove(step((sp.sin(2 * A), 2 * sp.sin(A) * sp.cos(A))), cached=False)
    assert verdict.status == "unproved"
    assert not verdict.holds


def test_numerical_checks_are_confirmed_not_proved():
    made_up = step(
        (sp.Rational(2) ** 10, sp.Integer(1000) + 24), (sp.sqrt(P) ** 2 + A, A + P), (1 / (1 / A + 1), A / (1 + A))
    )
    assert prove(made_up, cached=False).status == "proved"
    confirmed = prove(Step(slug="n", claim="", identity=made_up.identity, scope=Scope.NUMERIC), cached=False)
    assert confirmed.status == "confirmed"
    assert confirmed.holds


def test_sums_in_normal_form_have_the_same_value():
    samples = [
        symbolic_sum(symbolic_sum(X[I] * Y[J] * X[I, J] + A, I, N), J, M),
        symbolic_sum(sp.exp(X[I] - A) / symbolic_sum(X[J], J, N), I, N),
    ]
    for e in samples:
        assert numeric_counterexample(e, tidy(e)) is None
        assert tidy(e) != e


def test_sums_whose_ranges_depend_on_each_other_are_not_exchanged():
    triangle = sp.Sum(sp.Sum(X[I, J], (J, 1, I)), (I, 1, N))
    assert numeric_counterexample(triangle, tidy(triangle)) is None


def test_derivatives_go_through_exponentials():
    xp = TowerArithmetic()
    z = xp.symbols("z", 2)
    y = xp.exp(xp.exp(z) * 2 - xp.log(z * z + 1))
    for staged, plain in zip(entries(y), [sp.exp(2 * sp.exp(e)) / (e**2 + 1) for e in entries(z)], strict=True):
        assert is_identically_zero(xp.in_full(staged) - plain)
    for e, g in zip(entries(z), xp.gradient(y, [1, 1], z), strict=True):
        assert is_identically_zero(xp.in_full(g) - sp.diff(sp.exp(2 * sp.exp(e)) / (e**2 + 1), e))


STEP_FILE = """
from veriformer.spec.equation import Step
from veriformer.spec.proofs.indexed import real

def identity():
    log.append(1)
    a, b = real("a b")
    yield a * (a + b), a * b + a**{power}

log = []
STEP = Step(slug="made-up", claim="", identity=identity)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setenv("VERIFORMER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # texts of one second and one size have one compiled module

    def load(power, name="made_up"):
        file = tmp_path / f"{name}.py"
        file.write_text(STEP_FILE.format(power=power))
        proof_cache._text.cache_clear()
        proof_cache._imports.cache_clear()
        specification = importlib.util.spec_from_file_location(name, file)
        made_up = importlib.util.module_from_spec(specification)
        specification.loader.exec_module(made_up)
        return made_up

    return load


def test_a_verdict_is_remembered_until_its_text_changes(module):
    made_up = module(2)
    first = prove(made_up.STEP)
    again = prove(made_up.STEP)
    assert first == again
    assert first.status == "proved"
    assert made_up.log == [1]
    changed = module(3)
    assert prove(changed.STEP).status == "refuted"
    assert changed.log == [1]
    back = module(2)
    assert prove(back.STEP) == first
    assert back.log == []


def test_no_cache_proves_again(module):
    made_up = module(2)
    prove(made_up.STEP)
    prove(made_up.STEP, cached=False)
    assert made_up.log == [1, 1]


def test_another_version_of_sympy_is_another_proof(module, monkeypatch):
    made_up = module(2)
    key = proof_cache.key(made_up.STEP)
    monkeypatch.setattr(proof_cache, "version", lambda name: "0.0")
    assert proof_cache.key(made_up.STEP) != key


def test_the_modules_that_a_proof_rests_on_are_part_of_its_key(module, monkeypatch):
    made_up = module(2)
    key, read = proof_cache.key(made_up.STEP), proof_cache._text
    sources = {file.name for file in proof_cache._closure(proof_cache.Path(made_up.__file__))}
    assert {"made_up.py", "indexed.py", "algebra.py", "sums.py", "lazy_sympy.py", "symbolic.py"} <= sources
    assert "softmax.py" not in sources
    monkeypatch.setattr(proof_cache, "_text", lambda file: read(file) + b"#" * (file.name == "sums.py"))
    assert proof_cache.key(made_up.STEP) != key


@pytest.mark.parametrize("rubbish", ["", "{", "[1]", '{"status": "proved"}'])
def test_a_damaged_cache_is_no_proof(module, rubbish):
    made_up = module(3)
    prove(made_up.STEP)
    (proof_cache.directory() / f"{proof_cache.key(made_up.STEP)}.json").write_text(rubbish)
    assert prove(made_up.STEP).status == "refuted"
    assert made_up.log == [1, 1]


def test_a_cache_that_cannot_be_written_is_done_without(module, tmp_path, monkeypatch):
    made_up = module(2)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("VERIFORMER_CACHE", str(tmp_path / "file"))
    assert prove(made_up.STEP).status == "proved"
    assert prove(made_up.STEP).status == "proved"
    assert made_up.log == [1, 1]


@pytest.mark.whole
def test_all_steps_of_a_selection_are_proved_in_parallel_and_then_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("VERIFORMER_CACHE", str(tmp_path))
    chosen = select("1", "12")
    expected = {(e.slug, s.slug) for e in chosen for s in e.steps}
    found = {(e.slug, s.slug): v for e, s, v in prove_all(chosen, jobs=2)}
    assert set(found) == expected
    assert all(v.status == "proved" for v in found.values())
    assert {(e.slug, s.slug): v for e, s, v in prove_all(chosen, jobs=2)} == found


@pytest.mark.parametrize(
    ("selection", "labels"),
    [
        (("24",), ["24a", "24b"]),
        (("24a",), ["24a"]),
        (("20-24a",), ["20", "21", "22", "23", "24a"]),
        (("24b-25",), ["24b", "25"]),
        (("20-24",), ["20", "21", "22", "23", "24a", "24b"]),
        (("*s-norm", "layer-n?rm", "1"), ["1", "19", "rms-norm"]),
        (("online-softmax",), ["online-softmax"]),
        (("1", "1", "softmax"), ["1"]),
    ],
)
def test_selections(selection, labels):
    assert [e.label for e in select(*selection)] == labels


def test_all_equations_in_the_order_of_their_numbers():
    labels = [e.label for e in select()]
    assert labels == [e.label for e in equations()]
    assert labels.index("2") < labels.index("11") < labels.index("24a") < labels.index("24b") < labels.index("rms-norm")


@pytest.mark.parametrize("selection", ["99", "20-10", "90-99", "24a-999", "0-3", "nothing", "24c"])
def test_unknown_equations_are_answered_by_a_list(selection):
    with pytest.raises(UnknownEquationError, match=rf"{selection}.*24a, 24b"):
        select("1", selection)


def test_the_kind_of_an_erratum_is_one_of_four():
    with pytest.raises(ValueError, match="kind"):
        Erratum(
            slug="x",
            kind="ugly",
            source=Source("002", "1", 1),
            printed="",
            corrected="",
            counterexample=lambda: Evidence("", 1, 2),
        )


def test_of_another_convention_nobody_says_that_it_is_the_truth():
    for equation in equations():
        for erratum in equation.errata:
            assert ("the truth is" in erratum.told) == (erratum.kind != "convention"), erratum.slug


def test_evidence_that_shows_nothing_does_not_refute():
    assert not Evidence("anywhere", sp.Integer(2), 2).refutes
    assert Evidence("anywhere", sp.Integer(2), 3).refutes
