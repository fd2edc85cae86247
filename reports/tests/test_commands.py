import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from veriformer.reports.cli import diff, report
from veriformer.reports.difference import changes
from veriformer.reports.runs import as_set, read_results
from veriformer.verify.results import Status


def call(command, *words):
    return CliRunner().invoke(command, [str(word) for word in words])


def test_report_writes_page_set_summary_and_badge(run, row, violation, documents, save, tmp_path):
    results = [save("a.json", run([row(), violation()], target="a")), save("b.json", run(target="b"))]
    extras = [
        word
        for name in ("mutants", "spec", "benchmarks")
        for word in (f"--{name}", save(f"{name}.json", documents[name]))
    ]
    found = call(report, *results, *extras, "--output", tmp_path / "new" / "out")
    assert found.exit_code == 1, found.output
    out = tmp_path / "new" / "out"
    assert sorted(path.name for path in out.iterdir()) == ["badge.svg", "index.html", "results.json", "summary.md"]
    assert [r.implementation["target"] for r in read_results(out / "results.json")] == ["a", "b"]
    assert json.loads((out / "results.json").read_text())["schema"] == "veriformer/results-set/1"
    ElementTree.fromstring((out / "badge.svg").read_text())


def test_report_writes_one_log_of_findings_for_code_scanning(run, violation, save, tmp_path):
    results = [save(f"{name}.json", run([violation()], target=name)) for name in ("a.py", "b.py")]
    found = call(report, *results, "--output", tmp_path, "--sarif", tmp_path / "sarif" / "found.sarif")
    assert found.exit_code == 1, found.output
    log = json.loads((tmp_path / "sarif" / "found.sarif").read_text())
    ids = [run["automationDetails"]["id"] for run in log["runs"]]
    assert ids == ["veriformer/a.py/", "veriformer/b.py/"]


def test_report_may_write_over_what_it_reads(run, save, tmp_path):
    path = save("results.json", run())
    assert call(report, path, "--output", tmp_path).exit_code == 0
    assert call(report, path, "--output", tmp_path).exit_code == 0
    assert len(read_results(path)) == 1


def test_report_ends_with_the_worst_of_its_runs(run, row, violation, save, tmp_path):
    held, broken = save("held.json", run()), save("broken.json", run([violation()]))
    invalid = save("invalid.json", run([row()], planned=2))
    for files, status in (([held], 0), ([held, broken], 1), ([invalid, broken], 3)):
        assert call(report, *files, "--output", tmp_path / "out").exit_code == status


@pytest.mark.parametrize("option", ["--mutants", "--spec", "--benchmarks"])
def test_report_refuses_what_it_cannot_read(run, save, tmp_path, option):
    good, bad = save("good.json", run()), save("bad.json", {"schema": "other"})
    for words in ([bad], [tmp_path / "absent.json"], [good, option, bad], [good, option, tmp_path / "absent.json"]):
        found = call(report, *words, "--output", tmp_path / "out")
        assert found.exit_code == 2
        assert "expected" in found.output
        assert "Traceback" not in found.output
    assert not (tmp_path / "out").exists()


def test_report_refuses_a_folder_that_cannot_be(run, save, tmp_path):
    save("file", {})
    assert call(report, save("a.json", run()), "--output", tmp_path / "file" / "below").exit_code == 2


def test_diff_tells_newly_failing_first(run, row, violation, save):
    old = run([row("softmax.a"), violation("softmax.b"), row("softmax.c"), row("softmax.d"), violation("softmax.e")])
    new = run(
        [
            row("softmax.c", status=Status.VACUOUS),
            row("softmax.b"),
            violation("softmax.a"),
            violation("softmax.e"),
            violation("softmax.f"),
        ]
    )
    found = call(diff, save("old.json", old), save("new.json", new))
    assert found.exit_code == 1
    assert found.output.splitlines() == [
        "newly failing (2)",
        "  mine.py  softmax.a[fp32-cpu]: pass → fail",
        "  mine.py  softmax.f[fp32-cpu]: no row → fail",
        "evidence lost (2)",
        "  mine.py  softmax.c[fp32-cpu]: pass → vacuous",
        "  mine.py  softmax.d[fp32-cpu]: pass → no row",
        "newly passing (1)",
        "  mine.py  softmax.b[fp32-cpu]: fail → pass",
    ]


def test_changes_come_newly_failing_first(run, row, violation):
    old = run([violation("softmax.a"), row("softmax.b"), row("softmax.c")])
    new = run([row("softmax.a"), row("softmax.b", status=Status.BLOCKED), violation("softmax.c")])
    assert [change.key[8] for change in changes([old], [new])] == ["c", "b", "a"]


def test_diff_without_newly_failing_rows_ends_with_0(run, row, violation, save):
    old, new = save("old.json", run([violation()])), save("new.json", run([row("softmax.shift")]))
    assert call(diff, old, new).exit_code == 0
    same = call(diff, old, old)
    assert (same.exit_code, same.output) == (0, "no finding came or went, and no row changed its status\n")


def test_a_failure_that_becomes_blocked_is_no_pass(run, row, violation, save):
    new = run([row("softmax.shift", status=Status.BLOCKED)])
    found = call(diff, save("old.json", run([violation()])), save("new.json", new))
    assert "newly passing" not in found.output
    assert "fail → blocked" in found.output


def test_diff_says_where_the_new_runs_cannot_be_relied_on(run, row, save):
    new = run([row(status=Status.HARNESS_ERROR)], planned=3)
    found = call(diff, save("old.json", run()), save("new.json", new))
    assert found.exit_code == 3
    assert "new: INVALID mine.py has no valid verdict" in found.output
    assert "1 of 3 planned rows ran and the suite itself broke in 1 row" in found.output


@pytest.mark.parametrize("status", [Status.NOT_PROVIDED, Status.VACUOUS, Status.BLOCKED, Status.NOT_APPLICABLE, None])
def test_lost_evidence_is_named_and_counts(run, row, save, status):
    kept = [row("softmax.equation")]
    lost = [] if status is None else [row("softmax.shift", status=status)]
    old = save("old.json", run([*kept, row("softmax.shift")]))
    found = call(diff, old, save("new.json", run([*kept, *lost])))
    assert found.exit_code == 1, found.output
    assert found.output.splitlines()[0] == "evidence lost (1)"


def test_a_run_that_shows_nothing_is_inconclusive_and_no_success(run, row, save):
    nothing, good = save("a.json", run([row(status=Status.VACUOUS)])), save("b.json", run())
    for words, side in (((good, nothing), "new"), ((nothing, good), "old")):
        found = call(diff, *words)
        assert found.exit_code == 3
        assert f"{side}: INCONCLUSIVE mine.py was not judged well enough" in found.output


def test_findings_are_compared_first_by_id_and_weight(run, row, violation, save, finding):
    rows = [row(), violation()]
    known = {"rows": ("softmax.shift[fp32-cpu]",)}
    old = run(rows, findings=[finding("a", **known), finding("b", "unguarded"), finding("c", "imprecise")])
    new = run(rows, findings=[finding("b", "leak", **known), finding("c", "unguarded"), finding("d", "fragile")])
    found = call(diff, save("old.json", old), save("new.json", new))
    assert found.exit_code == 1
    assert found.output.splitlines() == [
        "new findings (1)",
        "  mine.py  fragile: softmax: fault d",
        "findings of another weight (2)",
        "  mine.py  unguarded → leak: softmax: fault b",
        "  mine.py  imprecise → unguarded: softmax: fault c",
        "findings that are gone (1)",
        "  mine.py  wrong: softmax: fault a",
    ]


@pytest.mark.parametrize(("weight", "status"), [("wrong", 1), ("leak", 1), ("fragile", 1), ("imprecise", 0)])
def test_new_advice_is_told_and_is_nothing_worse(run, save, finding, weight, status):
    found = call(diff, save("old.json", run()), save("new.json", run(findings=[finding("a", weight)])))
    assert found.exit_code == status
    assert "new findings (1)" in found.output


def test_a_run_from_before_findings_is_compared_by_its_rows(run, violation, row, save, finding):
    new = run([violation()], findings=[finding("a", rows=("softmax.shift[fp32-cpu]",))])
    found = call(diff, save("old.json", run([violation()])), save("new.json", new))
    assert found.exit_code == 0
    assert found.output.startswith("mine.py: one side has no findings, only rows are compared")


def test_sets_are_matched_by_target_and_device(run, violation, save):
    gpu = {**run().environment, "device": "a GPU"}
    old = save("old.json", as_set([run(target="a"), run(target="b"), run(target="b", environment=gpu)]))
    new = save("new.json", as_set([run(target="b", environment=gpu), run([violation("softmax.equation")], target="b")]))
    found = call(diff, old, new)
    assert found.exit_code == 1
    assert found.output.splitlines() == [
        "newly failing (1)",
        "  b  softmax.equation[fp32-cpu]: pass → fail",
        "evidence lost (1)",
        "  a  softmax.equation[fp32-cpu]: pass → no row",
    ]


def test_two_single_runs_are_compared_whatever_they_are_called(run, violation, save):
    found = call(diff, save("old.json", run(target="a")), save("new.json", run([violation()], target="b")))
    assert "  b  softmax.shift[fp32-cpu]: no row → fail" in found.output.splitlines()


@pytest.fixture
def told(run, row, violation, save, finding, tmp_path):
    """Call diff on a run that got worse, and return what it wrote by the ending of the file."""
    known = {"rows": ("softmax.shift[fp32-cpu]",)}
    old = run([row("softmax.shift"), row("softmax.a")], findings=[finding("a", "imprecise")])
    new = run([violation("softmax.shift")], findings=[finding("b", what="<b> | `fault` _b_", **known)])
    files = {ending: tmp_path / "new" / f"diff.{ending}" for ending in ("json", "md", "html")}
    options = zip(("--json", "--markdown", "--html"), files.values(), strict=True)
    words = [word for pair in options for word in pair]
    found = call(diff, save("old.json", old), save("new.json", new), *words)
    assert found.exit_code == 1, found.output
    return {ending: file.read_text(encoding="utf-8") for ending, file in files.items()} | {"terminal": found.output}


def test_diff_as_json_says_what_became_of_every_finding_and_row(told):
    found = json.loads(told["json"])
    assert (found["schema"], found["status"], found["caveats"]) == ("veriformer/diff/1", 1, [])
    assert [(x["change"], x["worse"], x["old"] is None, x["new"] is None) for x in found["findings"]] == [
        ("new", True, True, False),
        ("gone", False, False, True),
    ]
    assert found["findings"][0]["new"]["title"] == "softmax: <b> | `fault` _b_"
    assert [(x["row"], x["change"], x["worse"], x["old"], x["new"]) for x in found["rows"]] == [
        ("softmax.shift[fp32-cpu]", "newly failing", True, "pass", "fail"),
        ("softmax.a[fp32-cpu]", "lost", True, "pass", None),
    ]


@pytest.mark.parametrize("ending", ["md", "html", "terminal"])
def test_diff_tells_the_same_changes_in_every_form(told, ending):
    headings = ["new findings (1)", "findings that are gone (1)", "newly failing (1)", "evidence lost (1)"]
    places = [told[ending].lower().find(heading) for heading in headings]
    assert places == sorted(places)
    assert places[0] >= 0
    assert "softmax.shift[fp32-cpu]" in told[ending].replace("\\", "")


def test_diff_shows_text_of_others_as_it_is(told):
    assert r"\<b\> \| \`fault\` \_b\_" in told["md"]
    assert "<b>" not in told["html"]


def test_diff_of_equal_runs_says_so_in_every_form(run, save, tmp_path):
    path, written = save("a.json", run()), tmp_path / "written"
    assert call(diff, path, path, "--markdown", written).exit_code == 0
    assert "No finding came or went" in written.read_text()
    assert call(diff, path, path, "--html", written).exit_code == 0
    assert "No finding came or went" in written.read_text()


def test_diff_refuses_a_file_that_cannot_be_written(run, save):
    path = save("a.json", run())
    assert call(diff, path, path, "--json", path / "below.json").exit_code == 2


def test_diff_refuses_what_it_cannot_read(run, save, tmp_path):
    good, bad = save("good.json", run()), save("bad.json", [])
    for words in ((good, bad), (bad, good), (good, tmp_path / "absent.json")):
        found = call(diff, *words)
        assert found.exit_code == 2
        assert "expected a results file" in found.output
