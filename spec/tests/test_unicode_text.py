"""Formulas of the specification as one line of Unicode text."""

import pytest

from veriformer.spec.derivation import example, literature, starts_from
from veriformer.spec.registry import equations, select
from veriformer.spec.unicode_text import in_sentence, unicode_text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"\frac{e^{z_i}}{\sum_{j=1}^n e^{z_j}}", "e^zᵢ/(∑ⱼ₌₁ⁿ e^zⱼ)"),
        (r"\|\mathbf{g}\|_2", "‖g‖₂"),
        (r"\log p_i", "log pᵢ"),
        (r"T_{\text{warmup}}^{-1.5}", "T_warmup^(-1.5)"),
        (r"\{i : p_i \le p\}", "{i : pᵢ ≤ p}"),
        (r"\frac{a + b}{\sqrt{d_k}}", "(a + b)/√dₖ"),
        (r"\text{total_loss}", "total_loss"),
        (r"\frac{\operatorname{erf}{\left(\frac{x}{2} \right)}}{2}", "(erf(x/2))/2"),
        (r"\sum_{\substack{1 \leq i \leq n\\1 \leq j \leq n}} x_{i j}", "∑_(1 ≤ i ≤ n,1 ≤ j ≤ n) xᵢⱼ"),
    ],
)
def test_formulas(latex, text):
    assert unicode_text(latex) == text


@pytest.mark.parametrize("equation", equations(), ids=lambda e: e.slug)
def test_nothing_of_latex_is_left(equation):
    latex = [equation.statement, *(x for s in equation.symbols for x in (s.name, s.space))]
    latex += [x for e in equation.errata for x in (e.printed, e.corrected)]
    texts = [*map(unicode_text, latex), *(in_sentence(s.claim) for s in equation.steps)]
    assert all(texts)
    assert not [t for t in texts if "\\" in t or "$" in t or any("\ue000" <= c <= "\uf8ff" for c in t)]


def test_a_step_names_what_it_starts_from():
    (softmax,) = select("1")
    steps = {s.slug: s for s in softmax.steps}
    assert [name for name, _ in starts_from(steps["derivative" if "derivative" in steps else "sums-to-one"])][:1] == [
        "weight"
    ]


def test_an_example_is_computed():
    (softmax,) = select("1")
    arguments, value = example(softmax)
    assert set(arguments) == {"z"}
    assert value.startswith("[")


@pytest.mark.parametrize("equation", equations(), ids=lambda e: e.slug)
def test_every_formula_that_has_arguments_to_draw_has_an_example(equation):
    found = example(equation)
    assert (found is not None) is (equation.formula is not None and equation.sample is not None)
    assert found is None or found[1]


def test_literature_names_equations_that_there_are():
    named = {e.slug for e in equations() if list(literature(e))}
    assert {"attention", "adam-step", "layer-norm"} <= named
    assert list(literature(select("20")[0])) == ["Vaswani et al., Attention Is All You Need, 2017"]
