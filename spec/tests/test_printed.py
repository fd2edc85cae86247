"""Printed parts of equations: each stands in a document, letter for letter, or is computed, or is listed as ours.

The quotations themselves are compared with the documents in `test_source_quotations`.
"""

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest
import sympy as sp
import torch
from sympy.parsing.sympy_parser import convert_xor, implicit_multiplication, parse_expr, standard_transformations

from veriformer.spec import costs
from veriformer.spec.arithmetic import Symbolic
from veriformer.spec.blocks import costs_model
from veriformer.spec.heads.weights import weight_count
from veriformer.spec.layers.weights import feed_forward_weights, gpt2_weights
from veriformer.spec.operations import OPERATIONS
from veriformer.spec.proofs.latex_reader import formulas, stated
from veriformer.spec.registry import equations
from veriformer.spec.sources.source_coverage import quoted_lines, statements

sys.path.insert(0, str(Path(__file__).parent))

from printed_letters import LETTERS

ROOT = Path(costs.__file__).parent
EQUATIONS = {e.slug: e for e in equations()}

# How many parts of a statement, between \quad, no document prints: they sum up words or code, or are set in other
# letters. Nothing here holds those parts; all others are held letter for letter, or read (`printed_letters`).
OWN = {
    "value-cache": 1,
    "feed-forward-weights": 1,
    "gpt2-weights": 1,
    "head-weights": 1,
    "mixed-precision": 1,
    "model-costs": 1,
    "momentum-claims": 1,
}


def letters(latex):
    """LaTeX without what only sets type: spaces, sizes of brackets, faces, braces, commas, and periods after a word."""
    text = re.sub(r"\\(?:left|right|big|Big|quad|qquad)(?![a-zA-Z])|\\[,;! ]", "", latex)
    text = text.replace(r"\top", "T").replace(r"\mid", "|")
    return re.sub(r"[\s{},$&]|\.(?!\d)|\\(?:text|mathrm|mathbf|operatorname)(?![a-zA-Z])", "", text)


def quoted(equation):
    """Return the quotations of the lines that an equation names as its sources, and of those it decides, in order."""
    lines = {(s.document, s.line) for s in equation.sources}
    found = {
        (q.document, q.line, q.column, q.words)
        for statement in statements()
        for q in statement.quoted
        if equation.slug in statement.equations or any((q.document, line) in lines for line in quoted_lines(q))
    }
    return "".join(letters(words) for *_, words in sorted(found))


def unquoted(equation):
    words = quoted(equation)
    return [part for part in parts(equation) if not re.search(re.escape(letters(part)) + r"(?![\^_])", words)]


def parts(equation):
    return re.split(r",?\s*\\quad", equation.statement)


@pytest.mark.parametrize("slug", [slug for slug in EQUATIONS if slug not in LETTERS])
def test_every_part_of_a_statement_is_printed_in_a_source_or_is_ours(slug):
    assert len(unquoted(EQUATIONS[slug])) == OWN.get(slug, 0)


@pytest.mark.parametrize("slug", LETTERS)
def test_what_no_source_prints_of_a_statement_is_what_the_formula_computes(slug):
    known, values = LETTERS[slug]
    assert stated(r", \quad ".join(unquoted(EQUATIONS[slug])), known(), values)


CORRECTIONS = {f"{e.slug}:{x.slug}": x for e in equations() for x in e.errata if list(formulas(x.corrected))}


@pytest.mark.parametrize("name", CORRECTIONS)
def test_every_formula_of_a_correction_is_what_its_counterexample_computes(name):
    evidence = CORRECTIONS[name].counterexample()
    assert stated(CORRECTIONS[name].corrected, evidence.letters, evidence.values)


def read(latex):
    """A polynomial in LaTeX as a SymPy expression."""
    text = re.sub(r"_\{\\text\{(\w+)\}\}", r"_\1", latex).replace(r"\times", "*")
    return parse_expr(text, transformations=(*standard_transformations, implicit_multiplication, convert_xor))


def counted(xp, name):
    letters = sp.symbols("V n L d")
    if name == "model-costs":
        return costs_model.forward_flops().xreplace({costs.symbol(x.name): x for x in letters})
    return gpt2_weights(xp, *letters).value[()]


@pytest.mark.parametrize(("slug", "left"), [("gpt2-weights", ""), ("model-costs", "C(n) = ")])
def test_counts_are_printed_as_they_are_computed(slug, left):
    printed = EQUATIONS[slug].statement
    assert printed.startswith(left)
    assert sp.expand(read(printed.removeprefix(left)) - counted(Symbolic(), slug)) == 0


def test_weights_of_a_network_and_of_heads_are_printed_as_they_are_computed():
    d, h, wide, d_k = sp.symbols("d_model h d_ffn d_k")
    counts, total = map(read, EQUATIONS["feed-forward-weights"].statement.split("="))
    assert sp.expand(counts - feed_forward_weights(Symbolic(), d, wide).value[()]) == 0
    assert counts.subs(wide, 4 * d) == total
    first, second = EQUATIONS["head-weights"].statement.split(r", \quad ")
    (inputs, three), (sums, four) = (map(read, part.split("=")) for part in (first, second))
    sizes = {"d": d, "H": h, "G": h, "d_k": d_k, "d_v": d_k}
    heads = weight_count().xreplace({costs.symbol(name): size for name, size in sizes.items()})
    assert inputs.subs(h, d / d_k) == three
    assert sp.expand(sums - heads.subs(h, d / d_k)) == 0
    assert sp.expand(sums - four) == 0


def defaults(function):
    found = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in found if p.default is not inspect.Parameter.empty}


FORMULAS = {e.formula.__name__: e for e in equations() if e.formula is not None}


def functions():
    """Every function over an arithmetic, by its name: formulas, their derivatives and their parts."""
    modules = {importlib.import_module(f"veriformer.spec.{name}") for name in _module_names()}
    found = {f for module in modules for f in vars(module).values() if inspect.isfunction(f)}
    named = {f.__name__: f for f in found if next(iter(inspect.signature(f).parameters), "") == "xp"}
    return {name: f for name, f in named.items() if f.__module__.startswith("veriformer.spec.")}


_NO_FORMULAS = ("sabotage", "sources", "requirements", "proofs")


def _module_names():
    files = (file.relative_to(ROOT) for file in ROOT.glob("*/*.py"))
    return [
        ".".join(file.with_suffix("").parts)
        for file in files
        if file.parts[0] not in _NO_FORMULAS and file.stem[:2] != "__"
    ]


def contract():
    """The numeric defaults of the operations' arguments, as their records have them: by operation, then argument."""
    return {name: _defaults(one) for name, one in OPERATIONS.items()}


def _defaults(operation):
    given = {name: one.default for name, one in operation.arguments.items() if not one.required}
    return {"axis" if name == "dim" else name: value for name, value in given.items()}


CONTRACT = contract()
NUMBERED = {
    (name, p): value
    for name, f in functions().items()
    for p, value in defaults(f).items()
    if isinstance(value, (int, float, tuple)) and not isinstance(value, bool)
}


@pytest.mark.parametrize(("name", "parameter"), sorted(NUMBERED))
def test_defaults_are_those_of_the_contract(name, parameter):
    """Check that functions outside the contract have the default of an operation that has such an argument."""
    operation = CONTRACT.get(name.removesuffix("_vjp"), {})
    shared = [of[parameter] for of in CONTRACT.values() if parameter in of]
    known = [operation[parameter]] if parameter in operation else shared
    if not known:
        assert NUMBERED[name, parameter] in (0, 0.0), "a default that no operation of the contract has"
    assert not known or NUMBERED[name, parameter] in known


@pytest.mark.parametrize(
    ("name", "theirs", "parameters"),
    [
        ("adam", torch.optim.Adam, ("betas", "eps", "weight_decay")),
        ("adamw", torch.optim.AdamW, ("betas", "eps", "weight_decay")),
        ("layer_norm", torch.nn.LayerNorm, ("eps",)),
        ("cross_entropy", torch.nn.CrossEntropyLoss, ("ignore_index", "label_smoothing")),
    ],
)
def test_defaults_are_those_of_pytorch(name, theirs, parameters):
    ours = defaults(FORMULAS[name].formula)
    assert {p: ours[p] for p in parameters} == {p: defaults(theirs)[p] for p in parameters}
