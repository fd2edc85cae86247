from xml.etree import ElementTree

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from veriformer.reports.environment import math, prose, statement


def shape(markup):
    """Tags and texts of a formula."""
    return [(element.tag, element.text) for element in ElementTree.fromstring(markup).iter()]


def test_a_formula_becomes_mathml():
    found = shape(math(r"\frac{a}{b}"))
    assert [tag for tag, _ in found if tag == "mfrac"] == ["mfrac"]
    assert math("x", display=True).startswith('<math display="block">')


@pytest.mark.parametrize(
    "latex", ["", "}{", r"\unheardof{x}", r"\text{<b>}", r"\text{a <b>b</b>}", r"\begin{aligned} a & b", "&"]
)
def test_latex_that_cannot_be_converted_is_shown_as_it_is_written(latex):
    found = math(latex)
    assert found.startswith('<code class="latex">')
    assert "<b>" not in found


@pytest.mark.parametrize("latex", [r"\href{javascript:alert(1)}{x}", r"\style{x:y}{x}", r"\class{evil}{x}"])
def test_nothing_that_runs_or_links_gets_through(latex):
    found = math(latex)
    assert "javascript" not in found or found.startswith("<code")
    assert "href" not in found.replace("\\href", "")
    assert "style=" not in found


@pytest.mark.whole
@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab1 \\{}^_&$<>\"'%~#"), max_size=20) | st.text(max_size=20))
def test_whatever_is_written_gives_well_formed_text(words):
    for found in (math(words), prose(words), statement(words)):
        printable = "".join(c if c.isprintable() and not 0xD800 <= ord(c) < 0xE000 else "?" for c in found)
        elements = ElementTree.fromstring(f"<p>{printable}</p>").iter()
        assert {element.tag for element in elements} & {"script", "b", "a", "img"} == set()


def test_prose_holds_formulas_and_code():
    found = prose("with $x_1$ and `a < b` at < $5")
    assert found.startswith("with <math")
    assert found.endswith("</math> and <code>a &lt; b</code> at &lt; $5")
    assert prose(None) == ""


def test_words_of_a_statement_flow_as_text():
    found = statement(r"\text{the sum is } -1 \text{, not } 1")
    assert found.startswith("the sum is <math")
    assert ", not <math" in found
    assert statement(r"\text{only words, a < b}") == "only words, a &lt; b"


def test_a_statement_is_not_parted_within_what_is_open():
    for latex in (
        r"\begin{cases} 1 & \text{if so is it} \\ 0 \end{cases}",
        r"{a \text{ or so } b}",
        r"\left( a \quad b \right)",
    ):
        assert statement(latex).count("<math") == 1


def test_names_of_functions_stand_apart():
    assert '<mi>log</mi><mspace width="0.167em" /><mi>x</mi>' in math(r"\log x")
    assert "<mspace" not in math(r"\operatorname{softmax}(x)")
    assert "<mi>softmax</mi>" in math(r"\operatorname{softmax}(x)")


def test_aligned_lines_and_bold_letters_survive():
    assert math(r"\begin{aligned} a &= b \\ c &= d \end{aligned}").count("<mtr>") == 2
    assert 'class="variant-bold variant-italic"' in math(r"\boldsymbol{x}")
    assert "<mtext>d</mtext>" in math(r"\mathrm{d}x")
