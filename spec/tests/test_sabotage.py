"""The session that mutates the specification: what it mutates, and that it tells what is noticed from what is not."""

import ast
import importlib
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from veriformer.spec.registry import _MODULES
from veriformer.spec.sabotage.__main__ import drawn, recall
from veriformer.spec.sabotage.dependants import forget, reached
from veriformer.spec.sabotage.equivalent import EQUIVALENT
from veriformer.spec.sabotage.mutation import KINDS, ROOT, in_code, in_latex, mutations
from veriformer.spec.sabotage.trial import resting_on, tried

TESTS = Path(__file__).parent
FILES = ["scores/softmax.py", "positions/rope_rotation.py", "costs.py", "positions/rope.py", "scores/cross_entropy.py"]


@pytest.fixture(scope="module")
def found():
    return [m for file in FILES for m in mutations(ROOT / file)]


def test_every_kind_is_there_under_names_of_their_own(found):
    assert {m.kind for m in found} >= set(KINDS) - {"cost"}
    assert len({m.name for m in found}) == len(found)


@pytest.mark.slow("each of thousands of edited files is parsed")
def test_a_mutation_changes_one_place_of_one_file(found):
    for m in found:
        before, after = (ROOT / m.file).read_bytes(), m.applied()
        assert after != before
        assert before[m.start : m.end].decode() == m.old
        assert after.startswith(before[: m.start] + m.new.encode())
        assert after.endswith(before[m.end :])
        ast.parse(after)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a - b", ["(a + b)", "(b - a)", "(a)"]),
        ("-a", ["(a)"]),
        ("a < b", ["(a <= b)"]),
        ("xp.max(z)", ["xp.min"]),
        ("3", ["(4)"]),
    ],
)
def test_operators_of_code(code, expected):
    assert [new for *_, new in in_code(ast.parse(code).body)] == expected


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\frac{a}{b}", {r"\frac{b}{a}"}),
        (r"x_i + 2", {r"x_i - 2", r"x_j + 2", r"x_i + 3"}),
        (r"\text{1 + 2}", set()),
        (r"\min(1, c)", {r"\max(1, c)", r"\min(2, c)"}),
    ],
)
def test_operators_of_latex(latex, expected):
    assert {ast.literal_eval(new) for *_, new in in_latex(ast.Constant(latex))} == expected


def test_a_sample_takes_turns_between_the_kinds_and_is_repeatable(found):
    sample = drawn(found, 10, 3)
    assert sample == drawn(found, 10, 3) != drawn(found, 10, 4)
    turns = Counter(m.kind for m in sample).values()
    assert max(turns) - min(turns) <= 1


def test_what_was_found_of_another_state_of_the_files_is_not_recalled(tmp_path):
    journal = tmp_path / "journal"
    line = '{"state": "%s", "name": "%s", "by": "proof", "detail": "", "seconds": 1}\n'
    journal.write_text(line % ("old", "a") + line % ("new", "b"))
    assert set(recall(journal, "new")) == {"b"}


@pytest.mark.whole
def test_false_formulas_and_statements_are_noticed_and_an_equivalent_one_is_not(found):
    formula = next(m for m in found if m.file == "scores/softmax.py" and m.owner == "softmax_vjp" and "sign" in m.name)
    assert tried(formula, TESTS, 60).by == "proof"
    statement = next(m for m in found if m.kind == "statement" and m.owner == "softmax")
    assert tried(replace(statement, new=statement.old), TESTS, 60).by == "survived"
    noticed = tried(statement, TESTS, 60)
    assert (noticed.by, "test_printed" in noticed.detail) == ("test", True)


@pytest.mark.whole
def test_a_forgotten_module_is_loaded_anew_with_all_that_import_it(monkeypatch):
    names = [f"veriformer.spec.{name}" for name in ("scores.softmax", "generation.top_p_filter", "vectors.distances")]
    before = {name: importlib.import_module(name) for name in names}
    for name, module in list(sys.modules.items()):  # as they were, when this ends
        if name.startswith("veriformer.spec."):
            monkeypatch.setitem(sys.modules, name, module)
            package, _, last = name.rpartition(".")
            monkeypatch.setattr(sys.modules[package], last, module, raising=False)
    forget(names[0])
    assert [name in sys.modules for name in names] == [False, False, True]
    assert importlib.import_module(names[1]).softmax is importlib.import_module(names[0]).softmax
    assert importlib.import_module(names[0]) is not before[names[0]]


def test_what_a_step_reaches_is_what_its_code_names_and_what_that_names():
    softmax, cosine = (f"veriformer.spec.{name}" for name in ("scores.softmax", "vectors.distances"))
    found = reached("veriformer.spec.generation.top_p_filter", "top_p_filter")
    assert {("veriformer.spec.generation.top_p_filter", "mass_before"), (softmax, "softmax")} <= found
    assert not {(softmax, "softmax_vjp"), (cosine, "cosine_similarity")} & found


def test_a_mutation_lies_in_what_its_names_define(found):
    softmax = next(m for m in found if m.owner == "softmax_vjp")
    assert softmax.defines == {"softmax_vjp"}
    domain = next(m for m in found if m.kind == "domain")
    assert domain.defines == {"_SYMBOLS"}


def test_what_takes_too_long_is_not_called_noticed(found):
    outcome = tried(found[0], TESTS, 0.01)
    assert (outcome.by, outcome.killed) == ("limit", False)


def test_equivalent_mutations_exist_and_have_a_reason():
    names = {m.name for name in EQUIVALENT for m in mutations(ROOT / name.split(":")[1])}
    assert set(EQUIVALENT) <= names
    assert all(EQUIVALENT.values())


def test_an_equation_rests_on_the_module_that_records_it():
    modules = {f"veriformer.spec.{name}": importlib.import_module(f"veriformer.spec.{name}") for name in _MODULES}
    for name, module in modules.items():
        assert {e.slug for e in module.EQUATIONS} <= {e.slug for e in resting_on(name)}
