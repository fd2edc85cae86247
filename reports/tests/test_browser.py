"""Pages in a browser: accessible in every state, no wider than a telephone, and printed on few sheets."""

import shutil

import pytest

from veriformer.bench.document import Benchmarks
from veriformer.reports.difference import as_page, compare_runs
from veriformer.reports.equations import read_specification
from veriformer.reports.mutation_matrix import Kills
from veriformer.reports.page import Inputs, render_pages
from veriformer.reports.runs import label
from veriformer.verify.results import Status
from veriformer.verify.results.domain import Domain

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the dependency group browser")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="needs axe-playwright-python")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")

NARROW, WIDE = 390, 1280
LOOKS = (
    ("true", NARROW, "light"),
    ("false", WIDE, "light"),
    ("true", WIDE, "dark"),
    ("false", NARROW, "dark"),
)
"""State of all details, width of the window and colour scheme: every two of them meet."""

SIX = ("softmax", "cross_entropy", "layer_norm", "rms_norm", "swiglu", "attention")
TOO_WIDE = """[...document.querySelectorAll("body *")].filter(x => {
  const box = x.getBoundingClientRect();
  return box.width > innerWidth || (box.width > 1 && box.right > innerWidth + 0.5 && !x.closest(".formula"));
}).map(x => x.outerHTML.slice(0, 100))"""


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def reports(run, row, violation, finding, all_statuses):
    """Return runs that hold, that are violated, that have known failures, and of fifty of them."""
    laws = [f"law_{i}" for i in range(4)]
    held = [row(f"{name}.{law}") for name in SIX for law in laws]
    absent = [row(f"gelu.{law}", status=Status.NOT_PROVIDED) for law in laws]
    bad = [violation(f"{name}.long_law", message="x" * 400) for name in SIX]
    script = {**vars(bad[0].counterexample), "script": "target = " + "9" * 5000}
    found = [
        finding(f"f{i}", what=f"is wrong {'where ' * 30}{'y' * 80}", rows=(one.key,), counterexample=script,
                operation=one.operation, requirements=(one.requirement,), confirmed=True, fix="add it",
                where={"file": "/a/long/folder/of/some/project/with/many/parts/mine.py", "line": 12})
        for i, one in enumerate(bad)
    ]  # fmt: skip
    waiver = {"reason": "fused", "link": "https://a.b/" + "c" * 90, "expires": "2027-01-01"}
    known = [row(f"{name}.law", status=Status.KNOWN_FAIL, waiver=waiver, worst_ratio=9.0) for name in SIX]
    domain = {"softmax": Domain(refused={"a very long feature " * 4: "ValueError: " + "z" * 200})}
    fifty = [run([*held[:8], known[0], *(bad[:2] if i % 10 == 0 else [])], target=f"target_{i}.py") for i in range(50)]
    return {
        "holds": [run(held, target="a/folder/" + "w" * 60 + ".py")],
        "violated": [run([*held, *bad, *absent, *all_statuses], findings=found, domain=domain)],
        "known": [run([*held, *known, *absent])],
        "fifty": fifty,
        "folder": [run([*held, *bad], findings=found), run([*held, *known], target="a/folder/" + "w" * 60 + ".py")],
    }


@pytest.fixture
def beside(documents, save):
    """Inputs of a page beside runs: equations, the kill matrix, counts."""
    return {
        "benchmarks": Benchmarks.from_dict(documents["benchmarks"]),
        "kills": Kills(documents["mutants"]),
        "specification": read_specification(save("spec.json", documents["spec"])),
    }


@pytest.fixture
def opened(reports, beside, tmp_path, chromium, monkeypatch):
    """Return a function that writes a report and opens its first page; that of a folder has further ones."""

    def opened(name, width=WIDE):
        more = beside if name in ("known", "folder") else {}
        if name == "folder":
            monkeypatch.setattr("veriformer.reports.page.MOST_BYTES", 0)
        for path, text in render_pages(Inputs(runs=label(reports[name]), **more)).items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text, encoding="utf-8")
        tab = chromium.new_page(viewport={"width": width, "height": 900})
        tab.goto((tmp_path / "index.html").as_uri())
        return tab

    return opened


def assert_readable(tab):
    """Assert that a page is accessible and no wider than its window in every look."""
    for state, width, scheme in LOOKS:
        tab.evaluate(f"document.querySelectorAll('details').forEach(d => {{ d.open = {state} }})")
        tab.set_viewport_size({"width": width, "height": 900})
        tab.emulate_media(color_scheme=scheme)
        assert tab.evaluate(TOO_WIDE) == [], (state, width)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, (state, width)
        found = axe.Axe().run(tab, options={"resultTypes": ["violations"]}).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == [], (state, width, scheme)


@pytest.mark.whole
@pytest.mark.parametrize("name", ["holds", "violated", "known", "fifty"])
def test_a_page_is_accessible_and_no_wider_than_its_window(opened, name):
    tab = opened(name)
    assert_readable(tab)
    tab.close()


@pytest.mark.whole
@pytest.mark.parametrize("page", ["index", "softmax", "target-mine.py", "equations", "equation-1", "kills"])
def test_every_page_of_a_folder_is_accessible_and_no_wider_than_its_window(opened, page):
    tab = opened("folder")
    if page != "index":
        tab.goto(tab.url.replace("index.html", f"pages/{page}.html"))
    assert_readable(tab)
    tab.close()


@pytest.mark.whole
@pytest.mark.parametrize("name", ["holds", "violated"])
def test_a_difference_is_accessible_and_no_wider_than_its_window(reports, chromium, tmp_path, name):
    (tmp_path / "diff.html").write_text(as_page(compare_runs(reports["holds"], reports[name])), encoding="utf-8")
    tab = chromium.new_page()
    tab.goto((tmp_path / "diff.html").as_uri())
    assert_readable(tab)
    tab.close()


def test_links_into_what_is_closed_open_it(opened):
    tab = opened("violated")
    tab.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false })")
    anchor = tab.evaluate("document.querySelector('[id^=v-]').id")
    tab.evaluate(f"location.hash = '{anchor}'")
    assert tab.evaluate(f"document.getElementById('{anchor}').checkVisibility({{contentVisibilityAuto: true}})")
    tab.close()


@pytest.mark.whole
def test_links_to_another_page_open_what_is_closed_there(opened):
    tab = opened("folder")
    tab.click("a[href^='pages/target-mine.py.html']")
    tab.click(".op a[href^='softmax.html']")
    tab.evaluate("document.querySelectorAll('details').forEach(d => { d.open = false })")
    tab.click("td a[href^='#v-']")
    shown = "document.querySelector(location.hash).checkVisibility({contentVisibilityAuto: true})"
    assert tab.evaluate(shown)
    tab.click("a[href^='equation-1.html']")
    assert tab.evaluate(shown)
    assert tab.evaluate("document.querySelector('details').open")
    tab.close()


@pytest.mark.whole
def test_filters_and_the_skip_link_work_without_javascript(opened):
    tab = opened("violated")
    with_class = "name => [...document.querySelectorAll('.op')].filter(x => x.classList.contains(name)).map(x => x.id)"
    shown = "[...document.querySelectorAll('.op')].filter(x => x.checkVisibility()).map(x => x.id)"
    every = tab.evaluate(shown)
    for kind in ("violated", "known-failures", "advice", "not-shown", "held"):
        tab.check(f"#show-{kind}")
        assert tab.evaluate(shown) == tab.evaluate(with_class, f"has-{kind}") != [], kind
    tab.check("#show-not-shown")
    assert tab.evaluate(shown) != every
    tab.evaluate("document.activeElement.blur()")
    tab.goto(tab.url)
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.className") == "skip"
    tab.close()


def test_six_functions_are_printed_on_ten_sheets(opened):
    tab = opened("violated")
    sheets = tab.pdf(format="A4").count(b"/Type /Page\n")
    assert 1 <= sheets <= 10
    tab.close()


def test_letters_of_plots_can_be_read_on_a_telephone(opened):
    tab = opened("violated", NARROW)
    heights = "[...document.querySelectorAll('.chart text')].map(x => x.getBoundingClientRect().height)"
    assert min(tab.evaluate(heights)) >= 9
    tab.close()
