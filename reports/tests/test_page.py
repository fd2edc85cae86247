import posixpath
import re
import time
from html.parser import HTMLParser

import pytest

from veriformer.bench.document import Benchmarks
from veriformer.bench.operations.catalogue import FAMILIES
from veriformer.reports.costs import LETTERS
from veriformer.reports.environment import web_address
from veriformer.reports.equations import Specification, read_specification
from veriformer.reports.layout import row_anchor
from veriformer.reports.mutation_matrix import Kills
from veriformer.reports.page import Inputs, headline, render, render_pages, render_run
from veriformer.reports.runs import label
from veriformer.reports.statuses import STATUS_STYLES
from veriformer.verify.results import VIOLATIONS, Counterexample, Status
from veriformer.verify.results.domain import Domain


@pytest.fixture
def everything(run, all_statuses, violation, documents, save):
    rows = [*all_statuses, violation("softmax.law1", "fp16", message="the same in another dtype")]
    return Inputs(
        runs=label([run(rows), run(target="other.py"), run(target="short.py", planned=7)]),
        benchmarks=Benchmarks.from_dict(documents["benchmarks"]),
        kills=Kills(documents["mutants"]),
        specification=read_specification(save("spec.json", documents["spec"])),
    )


class Reader(HTMLParser):
    """A collector of tags with their attributes, anchors, and text; raises on elements that do not nest."""

    VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})

    def __init__(self, page):
        super().__init__()
        self.tags, self.open, self.texts = [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def test_the_page_needs_nothing_but_itself(everything):
    page = render(everything)
    reader = Reader(page)
    assert {tag for tag, _ in reader.tags} & {"script", "link", "img", "iframe", "object", "embed", "base"} == set()
    for tag, attributes in reader.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "srcset", "data", "action", "poster", "xlink:href"):
                assert (value or "").startswith("#"), (tag, name, value)
            if name == "href":
                assert re.match(r"#|https?://", value), (tag, value)
    assert not re.search(r"url\((?!['\"]?#)|@import", page)


def test_every_status_is_told_in_words_and_by_sign(everything):
    text = Reader(render(everything)).text
    for look in STATUS_STYLES.values():
        assert look.word in text
        assert look.sign in text
        assert look.meaning in text


def test_every_violation_appears_with_its_evidence(everything):
    page = render(everything)
    reader = Reader(page)
    anchors = {attributes.get("id") for _, attributes in reader.tags}
    rows = [(run, row) for run in everything.runs for row in run.results.results]
    told = [row_anchor(*one) for one in rows if one[1].status in VIOLATIONS | {Status.HARNESS_ERROR}]
    assert len(told) == 6
    assert set(told) <= anchors
    assert "raise SystemExit('violated')" in reader.text
    assert "0.5000001" in reader.text
    assert "the same in another dtype" in reader.text
    assert "not invariant to shifts" in reader.text


def test_links_within_the_page_lead_somewhere(everything):
    reader = Reader(render(everything))
    anchors = [attributes["id"] for _, attributes in reader.tags if attributes.get("id")]
    assert len(anchors) == len(set(anchors))
    targets = {a["href"][1:] for tag, a in reader.tags if tag == "a" and a.get("href", "").startswith("#")}
    assert targets <= set(anchors)
    assert "eq-1" in targets


def test_hostile_text_is_shown_and_does_nothing(run, violation, hostile, documents):
    example = Counterexample(arguments={hostile: hostile}, observed=hostile, exact=hostile, bound=None, script=hostile)
    rows = [violation(message=hostile, bug_class=hostile, device=hostile, counterexample=example, blocked_by=hostile)]
    wicked = run(rows, target=hostile, profile=hostile, seed=hostile, started=hostile)
    wicked.implementation |= {"name": hostile, "version": hostile, "claims": {hostile: hostile}}
    wicked.environment |= dict.fromkeys(("python", "torch", "platform", "cpu", "device", "driver"), hostile)
    clean = {key: value for key, value in documents["mutants"].items() if key != "mutants"}
    mutants = [mutant | {"title": hostile, "link": hostile} for mutant in documents["mutants"]["mutants"]]
    page = render(Inputs(runs=label([wicked]), kills=Kills({**clean, "mutants": mutants})))
    reader = Reader(page)
    assert {tag for tag, _ in reader.tags} & {"script", "img"} == set()
    assert not any(name.startswith("on") for _, attributes in reader.tags for name in attributes)
    assert 'alert("x")' in reader.text
    assert "49" not in re.findall(r"\$\{(\d+)", reader.text)


def test_findings_open_the_page_each_unfolding_to_its_evidence(run, violation, finding, hostile):
    example = {
        "arguments": {"z": hostile},
        "observed": [2.0],
        "exact": [1.0],
        "bound": [0.5],
        "script": "print(hostile)",
    }
    found = finding(
        "deep",
        what="is wrong",
        when=hostile,
        rows=("softmax.shift[fp32-cpu]", "softmax.gone[fp32-cpu]"),
        precedents=("https://a.b/c", "javascript:alert(1)"),
        suggestion={"convention": "c", "value": "v"},
        counterexample=example,
    )
    many = [finding(f"f{i}", "fragile") for i in range(59)]
    domain = {"softmax": Domain(refused={"grouped heads": hostile}, constants={"eps": 1e-5})}
    page = render_run(run([violation()], findings=[*many, found], domain=domain), "index.html")["index.html"]
    reader = Reader(page)
    assert page.index("does not compute the published mathematics: 60 findings") < page.index('id="findings"')
    listed = page.partition('id="findings"')[2]
    assert listed.index("softmax: is wrong") < listed.index("fault f0") < listed.index('id="matrix"')
    assert "script" not in {tag for tag, _ in reader.tags}
    for part in ("print(hostile)", "grouped heads", "eps = 1e-05, as measured", 'CLAIMS = {"conventions": {"c": "v"}}'):
        assert part in reader.text
    links = {attributes.get("href") for tag, attributes in reader.tags if tag == "a"}
    anchors = {attributes.get("id") for _, attributes in reader.tags}
    assert "https://a.b/c" in links
    assert "javascript:alert(1)" not in links
    assert {link[1:] for link in links if link.startswith("#")} <= anchors
    assert sum(name.startswith("f-") for name in anchors if name) == 60


def test_invalid_runs_are_shouted_and_planned_stands_beside_run(everything):
    text = Reader(render(everything)).text
    assert "1 of 7 planned rows ran" in text
    assert "Nothing below may be relied on" in text
    assert re.search(r"planned 7\s+run 1", text)


def test_equations_steps_errata_and_costs(everything):
    page = render(everything)
    text = Reader(page).text
    assert page.count("<math") > 10
    assert "1 refuted, 1 confirmed numerically, 1 proved for all n" in text
    assert "Of the statements of the documents: 2 proved for all n, 1 defined." in text
    assert "identity 1: x = 2" in text  # why a step is refuted
    assert "wrong as printed" in text
    assert "z = 0: the statement gives -1, the truth is 1" in text
    assert 'id="eq-1"' in page


def test_the_kill_matrix_and_the_counts(everything):
    text = Reader(render(everything)).text
    assert "survives" in text
    assert "SM-77 A race: needs two processes" in text
    assert "exp2 is correct, and is accused by softmax.shift in fp32" in text
    assert "at n = 2: counted 8, predicted 6" in text
    assert "a fused kernel" in text
    assert "of degree 2 in n, 3 calls" in text
    assert "n tokens" in text


def test_every_letter_that_is_counted_in_is_explained():
    counted = {letter for family in FAMILIES for letter in family.letters.split()}
    assert counted <= LETTERS.keys()


def test_what_was_not_given_is_left_out(run):
    page = render(Inputs(runs=label([run()])))
    for section in ("violations", "equations", "errata", "kills", "costs"):
        assert f'id="{section}"' not in page
    assert 'id="matrix"' in page


def test_the_same_findings_give_the_same_bytes(everything):
    assert render(everything) == render(everything)


def test_a_specification_that_is_broken_or_foreign_does_not_break_the_page(run, documents):
    equation = documents["spec"]["equations"][0]
    strange = {
        "slug": "odd",
        "number": None,
        "title": "<u>odd</u>",
        "statement": r"\broken{",
        "steps": [{"status": "new", "claim": "$\\x$"}],
    }
    from veriformer.reports.equations import EquationView

    specification = Specification((EquationView(equation), EquationView(strange)))
    page = render(Inputs(runs=label([run()]), specification=specification))
    reader = Reader(page)
    assert "\\broken{" in reader.text
    assert "u" not in {tag for tag, _ in reader.tags}


@pytest.mark.parametrize(
    ("address", "kept"),
    [
        ("https://a.b/c", True),
        ("http://a.b", True),
        ("javascript:alert(1)", False),
        ("//a.b", False),
        ("http://[", False),
    ],
)
def test_only_web_addresses_become_links(address, kept):
    assert (web_address(address) == address) is kept
    assert web_address(None) is None


def test_operations_that_nobody_provides_are_named_in_one_line(run, row):
    rows = [row(), row("gelu.equation", status=Status.NOT_PROVIDED), row("silu.equation", status=Status.NOT_PROVIDED)]
    page = render(Inputs(runs=label([run(rows)])))
    assert "Not provided: <code>gelu</code>, <code>silu</code>." in page
    assert 'id="r-softmax.equation"' in page
    assert 'id="r-gelu.equation"' not in page


def test_the_headline_says_what_holds_and_what_does_not(run, row, violation):
    def said(*runs):
        return headline(Inputs(runs=label(list(runs))).verdicts)

    good, bad = run(target="a"), run([violation()], target="b")
    nothing, invalid = run([row(status=Status.BLOCKED)], target="c"), run(target="d", planned=2)
    assert said(good) == "a computes the published mathematics, as far as it was tried: no finding."
    assert said(good, bad, nothing, invalid) == (
        "Of 4 runs, 1 invalid, 1 violated, 1 without evidence, 1 without a violation."
    )
    assert said() == "Nothing was run."


def test_the_headline_of_one_run_is_the_first_finding_and_says_what_to_do(run, violation, finding):
    row = violation()
    first = finding("deep", what="is wrong", rows=(row.key,), fix="add it", where={"file": "a.py", "line": 3})
    page = render(Inputs(runs=label([run([row], findings=[first])])))
    head = Reader(page.partition("<nav")[0] + "</body></html>").text
    assert "violated softmax: is wrong" in head
    assert "where a.py:3" in head
    assert "change add it" in head
    assert "published cost" not in page


def test_the_headline_of_one_run_begins_with_its_verdict_and_says_it_once(run, row, violation, finding):
    def said(run):
        page = Reader(render(Inputs(runs=label([run]))).partition("<nav")[0] + "</body></html>")
        return page.text.partition("report of mine.py")[2].strip()

    holds = said(run([row()]))
    assert holds.startswith("✓ holds mine.py computes the published mathematics")
    assert holds.count("✓ holds") == 1
    bad = violation()
    broken = run([bad, row("softmax.a", status=Status.HARNESS_ERROR)], findings=[finding(rows=(bad.key,))])
    assert said(broken).startswith("‼ invalid mine.py has no valid verdict, nothing here may be relied on")


def test_costs_are_asked_for_where_they_were_counted(everything):
    assert "at the published cost?" in render(everything)


def test_known_failures_stand_above_the_matrix_with_their_links(run, row):
    waiver = {"reason": "fused", "link": "https://a.b/1", "expires": "2027-01-01"}
    page = render(Inputs(runs=label([run([row(), row("softmax.a", status=Status.KNOWN_FAIL, waiver=waiver)])])))
    assert page.index('id="known"') < page.index('href="https://a.b/1"') < page.index('id="matrix"')
    assert page.count('href="#known"') >= 3  # from the verdict, the sections and the cell


def test_what_code_was_read_as_is_on_the_page(run):
    pin = {"operation": "softmax", "name": "s", "form": "f", "readings": {}, "deviations": [], "conventions": {}}
    read = run()
    read.implementation["recognised"] = [{**pin, "everywhere": False, "told": []}]
    assert "Read as recognised: softmax by the nearest reading." in render(Inputs(runs=label([read])))


def test_one_script_stands_for_all_rows_of_a_finding(run, violation, finding):
    rows = [violation("softmax.shift", dtype) for dtype in ("fp32", "fp16", "bf16")]
    rows.append(violation("softmax.shift", "fp32", candidate="another"))
    found = finding(rows=tuple(one.key for one in rows), counterexample=vars(rows[0].counterexample))
    page = render(Inputs(runs=label([run(rows, findings=[found])])))
    assert page.count("raise SystemExit") == 1
    assert len(set(re.findall(' id="(v-[^"]*)"', page))) == 4


def assert_linked(pages):
    """Assert that every link of pages leads to one of them, and there to a place."""
    readers = {name: Reader(text) for name, text in pages.items()}
    anchors = {name: {a["id"] for _, a in reader.tags if a.get("id")} for name, reader in readers.items()}
    for name, reader in readers.items():
        for address in (a["href"] for tag, a in reader.tags if tag == "a" and not a["href"].startswith("http")):
            path, _, anchor_there = address.partition("#")
            there = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            assert there in pages, (name, address)
            assert not anchor_there or anchor_there in anchors[there], (name, address)


@pytest.fixture
def large(monkeypatch):
    """Have every report be too large for one page."""
    monkeypatch.setattr("veriformer.reports.page.MOST_BYTES", 10_000)


@pytest.mark.usefixtures("large")
def test_a_large_report_is_a_folder_whose_links_lead_somewhere(run, row, violation, finding, documents):
    bad = violation("softmax.shift")
    rows = [bad, row(), row("gelu.equation"), row("gelu.bad", status=Status.HARNESS_ERROR)]
    findings = [
        finding(rows=(bad.key,), counterexample=vars(bad.counterexample)),
        finding("x", operation="loading", what="leaves a mark"),
    ]
    inputs = Inputs(runs=label([run(rows, findings=findings)]), kills=Kills(documents["mutants"]))
    found = render_pages(inputs)
    assert set(found) == {"index.html", *(f"pages/{n}.html" for n in ("softmax", "gelu", "loading", "kills"))}
    assert_linked(found)
    assert "raise SystemExit" in found["pages/softmax.html"]
    assert "raise SystemExit" not in found["index.html"]
    assert list(render_pages(inputs, "mine.html"))[1].startswith("mine-pages/")


@pytest.mark.whole
@pytest.mark.usefixtures("large")
def test_each_of_several_targets_and_each_equation_has_a_page(run, row, violation, finding, documents, save):
    bad, waiver = violation("softmax.shift"), {"reason": "fused", "link": "https://a.b/1", "expires": "2027-01-01"}
    known = row("softmax.a", status=Status.KNOWN_FAIL, waiver=waiver)
    found = finding(rows=(bad.key,), counterexample=vars(bad.counterexample))
    runs = label([run([row(), bad, known], findings=[found], target="a/b.py"), run(target="a-b.py")])
    equations = read_specification(save("spec.json", documents["spec"]))
    pages = render_pages(Inputs(runs=runs, specification=equations, kills=Kills(documents["mutants"])))
    assert_linked(pages)
    targets = sorted(name for name in pages if name.startswith("pages/target-"))
    assert targets == ["pages/target-a-b.py-" + targets[0][-13:], "pages/target-a-b.py.html"]
    for name in targets:
        assert f'href="{name}"' in pages["index.html"]
    assert "softmax: fault a" in Reader(pages[targets[0]]).text
    assert "fault a" not in pages["pages/target-a-b.py.html"]
    one = Reader(pages["pages/equation-1.html"]).text
    assert "They sum to one" in one
    assert "wrong as printed" in one
    assert "softmax.shift" in one
    assert "They sum to one" not in pages["pages/equations.html"]
    assert 'href="equation-1.html#eq-1"' in pages["pages/softmax.html"]
    assert 'id="bounds"' in pages["index.html"]


@pytest.mark.usefixtures("large")
def test_of_very_many_targets_each_has_its_plots_on_its_page(run):
    pages = render_pages(Inputs(runs=label([run(target=f"target_{i}.py") for i in range(7)])))
    assert 'id="bounds"' not in pages["index.html"]
    assert 'id="bounds"' in pages["pages/target-target_6.py.html"]


def test_fifty_targets_are_written_in_time(run, row, violation):
    rows = [row(f"{name}.law_{i}") for name in ("softmax", "rms_norm") for i in range(4)]
    bad = violation("swiglu.law")
    runs = [run([*rows, *([bad] if i % 10 == 0 else [])], target=f"target_{i}.py") for i in range(50)]
    before = time.process_time()
    found = render_pages(Inputs(runs=label(runs)))
    assert time.process_time() - before < 10
    assert len(found["index.html"]) < 1_000_000
