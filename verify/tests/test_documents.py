"""README and the pages of the site: their code runs, prints what they say, and their links and figures are right."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.documents import ROOT, blocks, run
from veriformer.spec.requirement import Weight
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.families.accuracy_limits import DEVIATIONS, LARGEST, LEANING
from veriformer.verify.operations.models.decision import FACTOR
from veriformer.verify.operations.models.noise import ERROR_RATE
from veriformer.verify.reference import KINDS

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
_HREF = re.compile(r'href="([^"#]+)"')

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def _read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    """Return the module that makes pages from the code."""
    spec = importlib.util.spec_from_file_location("reference", DOCS / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.whole
@pytest.mark.usefixtures("warm")
@each_page
def test_code_runs_and_prints_what_is_printed(page: Path, tmp_path: Path) -> None:
    run(page, tmp_path)


@each_page
def test_reason_for_code_that_is_not_run_is_a_sentence(page: Path) -> None:
    assert all(len(block.reason.split()) > 2 for block in blocks(page) if block.reason)


@pytest.mark.whole
@each_page
def test_links_lead_to_files(page: Path, reference: ModuleType) -> None:
    made = {(DOCS / name).resolve() for name in reference.pages()}
    places = {link: (page.parent / link).resolve() for link in _LINK.findall(page.read_text(encoding="utf-8"))}
    lost = [link for link, place in places.items() if ":" not in link and not place.exists() and place not in made]
    assert not lost


def test_every_name_has_a_page_and_links_between_them_hold(reference: ModuleType) -> None:
    pages, tables = reference.pages(), reference.tables()
    assert {f"requirements/{slug}.md" for slug in KINDS["requirement"].names()} <= pages.keys()
    assert all(f"## `{name}`" in tables["reference/results.md"] for name in KINDS["field"].names())
    assert all((DOCS / page).is_file() for page in tables)
    there = {Path(page).with_suffix(".html") for page in (*pages, *tables)}
    for page, text in (pages | tables).items():
        links = {link for link in _HREF.findall(text) if "://" not in link}
        places = {Path((DOCS / page).parent, link).resolve().relative_to(DOCS) for link in links}
        assert places <= there, page


def test_page_says_what_the_terminal_says(reference: ModuleType) -> None:
    page = reference.pages()["requirements/attention.causality.md"]
    for paragraph in KINDS["requirement"].explain("attention.causality").paragraphs:
        assert paragraph in page


def test_readme_is_short() -> None:
    assert 100 <= len(_read("README.md").splitlines()) <= 140


def test_limits_that_were_chosen_are_told() -> None:
    page = _read("docs/explanation/measured-limits.md")
    assert f"exp({DEVIATIONS} s √(n₀/n))" in page
    assert f"{LARGEST} times the plain formula's at most" in page
    assert f"{LEANING} times the largest that a correct" in page
    assert f"error rate of {ERROR_RATE:g} a judgement" in page
    assert f"within {FACTOR:g} spreads" in page


def test_figures_of_power_are_those_of_the_code() -> None:
    page = _read("docs/explanation/power.md")
    known = json.loads(_read("verify/veriformer/verify/mutants/known_bugs.json"))
    assert f"{len(known)} bugs that public code once had" in page
    quick, default, thorough = (PROFILES[name].examples for name in ("quick", "default", "thorough"))
    assert f"{quick}, {default} or {thorough} examples a row" in _read("docs/glossary.md")
    assert f"`quick` has some {quick} examples, of `default` {default}, of `thorough` {thorough}" in page


def test_weights_are_told() -> None:
    page = _read("docs/explanation/verdict.md")
    told = re.findall(r"^\| \*(\w+)\* \| .* \| (yes|with `--fail-on (\w+)`) \|$", page, flags=re.MULTILINE)
    assert [(weight, asked or None) for weight, _, asked in told] == [
        (weight.value, weight.value if weight.advice else None) for weight in Weight
    ]


@pytest.mark.whole
def test_site_is_built_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(tmp_path), strict=True))
    page = (tmp_path / "requirements" / "attention.causality.html").read_text(encoding="utf-8")
    assert not re.search(r'<(?:script|link|img)[^>]*(?:src|href)="https?:', page)
