"""Runs are told in findings: short, ranked, clean, whatever a target's messages hold."""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from veriformer.spec.requirement import Weight
from veriformer.verify import FindingsError
from veriformer.verify.engine.user_tests import report_outcome
from veriformer.verify.presentation.junit import write_junit
from veriformer.verify.presentation.known_failures import known_failures
from veriformer.verify.presentation.progress import TOLD_AT_ONCE, Live, show_rows
from veriformer.verify.presentation.ranked import advice, grave, ranked
from veriformer.verify.presentation.recognised import lines as recognised
from veriformer.verify.presentation.recognised import outside
from veriformer.verify.presentation.terminal import as_text, capture_text, show
from veriformer.verify.presentation.verdict import headline, scope, word
from veriformer.verify.results import Result, Results, Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.evidence import elements
from veriformer.verify.results.foreign import clean, one_line
from veriformer.verify.results.words import claim, facts, title

sys.path.insert(0, str(Path(__file__).parent))

from made_results import HOSTILE, failing, finding, results, row, several


def shown(run: Results, width: int = 100, **options: Any) -> str:
    file = io.StringIO()
    show(run, Console(file=file, width=width, **options))
    return file.getvalue()


def test_the_first_two_lines_are_the_verdict_and_for_what_it_holds() -> None:
    first, second, third, *_ = as_text(several()).splitlines()
    counts = "4 findings (2 wrong, 1 leak, 1 fragile)"
    assert first == f"VIOLATED mine.py does not compute the published mathematics: {counts}"
    judged = "fp64 and fp32, forward and backward; 3 of 5 features provided"
    narrower = "(without grouped heads and d_v ≠ d_k); only where n a multiple of 16"
    assert f"{second} {third}" == f"Judged for {judged} {narrower}", "both operations have findings"


def test_what_one_format_alone_refuses_is_told_with_it() -> None:
    refused = {"fp16 + a mask": "RuntimeError", "a mask + grouped heads": "RuntimeError", "d_k = 1": "RuntimeError"}
    run = replace(several(), domain={"attention": Domain(provided=("a bias",), refused=refused)})
    assert "1 of 2 features provided (without a mask in fp16 and d_k = 1)" in " ".join(as_text(run).split())


def test_no_line_of_a_terminal_ends_in_spaces() -> None:
    for width in (40, 100, 1000):
        assert [line for line in shown(several(), width).splitlines() if line != line.rstrip()] == []


def test_findings_come_by_weight_and_otherwise_as_they_came() -> None:
    assert [found.id for found in ranked(several())] == ["f1", "more", "leak", "fragile", "imprecise"]
    assert [found.id for found in grave(several())] == ["f1", "more", "leak", "fragile"]
    assert [found.id for found in advice(several())] == ["imprecise"]
    text = as_text(several())
    places = [text.index(f"\n{word}  ") for word in ("WRONG", "LEAK", "FRAGILE")]
    assert places == sorted(places)


def test_a_finding_is_told_with_its_facts() -> None:
    text = as_text(results([row(), failing()], findings=[finding()]))
    for fact in (
        "1. attention: a scale of 0 is taken as not given (when: scale = 0)",
        "q = [[[[1.0], [2.0]]]] (float32), k: float32 [1, 1, 9, 3], mask = None, scale = 0.0",
        "at [0, 1]: observed 0.731058579, exact 0.5, bound 5.96e-08 (off by 3.9e+06 × the",
        "1 failed row in fp64 and fp32: attention.scale and attention.equation",
        "https://github.com/x/y/pull/1",
    ):
        assert fact in text


def test_what_no_experiment_bore_out_is_told_as_such() -> None:
    assert title(finding(confirmed=False)).endswith("(perhaps when, not confirmed: scale = 0)")
    assert title(finding(what="attention: late", when=None)) == "attention: late"


def test_a_claim_is_told_as_the_line_of_code_that_makes_it() -> None:
    code = 'CLAIMS = {"conventions": {"causal.alignment": "top-left"}}'
    assert claim({"convention": "causal.alignment", "value": "top-left"}) == code
    assert claim({"causal.alignment": "top-left"}) == code
    assert code in as_text(several())


def test_remarks_come_after_the_findings_one_line_each() -> None:
    text = as_text(several())
    remarks = [
        "imprecise rms_norm: computed in float32 (when: float64 input)",
        "unguarded not met in 1 row: attention.refusals",
        "not provided attention: grouped heads (RuntimeError: The size of tensor a (3) must match)",
        "not provided gelu",
        "sizes    attention: n a multiple of 16",
        "measured rms_norm: eps = 1e-05, as measured; judged by it",
    ]
    lines = text.splitlines()
    places = [lines.index(remark) for remark in remarks]
    assert places == sorted(places)
    assert places[0] > lines.index("4. softmax: overflows (perhaps when, not confirmed: a row of −inf)")


def test_rows_that_the_domain_leaves_out_are_counted_in_its_line() -> None:
    refused = {"grouped heads": "ValueError: no"}
    message = "not provided: grouped heads (ValueError: no)"
    rows = [row(), row("attention.grouped_heads", Status.NOT_PROVIDED, message=message)]
    text = as_text(results(rows, domain={"attention": Domain(provided=("one",), refused=refused)}))
    told = [line for line in text.splitlines() if "grouped heads (" in line]
    assert told == ["not provided attention: grouped heads (ValueError: no) (1 row)"]


def test_the_same_advice_on_many_operations_is_one_line() -> None:
    operations = ("gelu", "silu", "softmax", "rope", "mlp")
    said = [
        finding(name, Weight.UNGUARDED, operation=name, what="None raises AttributeError", when=None)
        for name in operations
    ]
    lines = as_text(results(findings=said)).splitlines()
    assert "unguarded gelu, silu, softmax and 2 more: None raises AttributeError" in lines
    verdict = "mine.py computes the published mathematics, as far as it was tried: no finding; 5 pieces of advice"
    assert headline(results(findings=said)) == verdict


def test_a_row_that_no_finding_explains_is_never_lost() -> None:
    rows = [failing("attention.scale"), failing("attention.mask"), failing("attention.mask", dtype="fp16")]
    found = grave(results(rows, findings=[finding()]))
    assert [(f.id, len(f.rows), f.dtypes) for f in found[1:]] == [("attention.mask", 2, ("fp32", "fp16"))]
    assert "2. attention: option ignored" in as_text(results(rows, findings=[finding()]))


def test_findings_of_advice_alone_are_shown_where_they_were_held_strictly() -> None:
    strict = [finding(weight=Weight.UNGUARDED, rows=("attention.scale[fp32-cpu]",))]
    run = results([row(), failing(weight="unguarded")], findings=strict, strict=True)
    assert grave(run) == strict
    assert advice(run) == []
    assert headline(run) == (
        "mine.py does not meet the contract, whose lesser weights were asked for as well: 1 finding (1 unguarded)"
    )


@pytest.mark.parametrize(
    ("run", "first"),
    [
        (results(), "HOLDS mine.py computes the published mathematics, as far as it was tried: no finding"),
        (
            results([row(status=Status.NOT_PROVIDED)]),
            "INCONCLUSIVE mine.py was not judged: it has none of the operations that were asked for",
        ),
        (
            results([row(status=Status.VACUOUS)]),
            "INCONCLUSIVE mine.py was not judged well enough for a verdict: "
            "attention.equation not exercised in any dtype",
        ),
        (
            results([failing()], planned=3),
            "INVALID mine.py has no valid verdict, nothing here may be relied on: 1 of 3 planned rows ran; "
            "so far 1 finding (1 wrong)",
        ),
        (
            results([row(), failing(weight="fragile")]),
            "VIOLATED mine.py follows the published mathematics on ordinary input and fails at the edges: "
            "1 finding (1 fragile)",
        ),
    ],
)
def test_each_verdict_has_a_sentence(run: Results, first: str) -> None:
    assert shown(run, 300).splitlines()[0].strip() == first


def test_the_second_line_names_dtypes_in_which_the_equation_was_right() -> None:
    formats = ("fp64", "fp32", "bf16", "fp16")
    refusals = [row("attention.refusals", dtype=name, weight="unguarded") for name in formats]
    held = [row("attention.equation", dtype="fp32"), row("attention.equation", Status.ADVICE, dtype="fp16")]
    assert scope(results([*refusals, *held])) == "Holds for attention, fp32"
    others = [row("gelu.equation", dtype=name) for name in formats]
    assert scope(results([*refusals, *held, *others])) == (
        "Holds for attention (fp32); gelu (fp64, fp32, bf16 and fp16)"
    )
    assert scope(results([*refusals, held[1], *others[:1]])) == "Otherwise it holds for gelu, fp64"
    assert scope(results([*refusals, held[1]])) == ""


def test_weaknesses_stand_in_the_first_line_and_under_their_weight_after_the_verdict() -> None:
    weak = [
        finding(name, Weight.WEAKNESS, what=what, when=None, dtypes=("fp16",), witness="torch.rsqrt")
        for name, what in (("a", "x² overflows"), ("b", "x² underflows"))
    ]
    run = results(findings=[*weak, finding("c", Weight.IMPRECISE, what="coarse", when=None)])
    lines = as_text(run).splitlines()
    assert lines[0] == (
        "HOLDS with 2 weaknesses: mine.py computes the published mathematics, as far as it was tried: no"
    )
    assert "WEAKNESS  as PyTorch's own operator, or the formula step by step in that dtype, does as well" in lines
    assert "1. attention: x² overflows" in lines
    assert "imprecise attention: coarse" in lines
    assert not any(line.startswith("weakness ") for line in lines)
    counted = results(findings=weak, fail_on=Weight.WEAKNESS)
    assert as_text(counted).startswith("VIOLATED mine.py")


def test_what_was_not_seen_stands_in_the_first_line() -> None:
    domain = Domain(never_run=(("/a/mine.py", 14, 18), ("/a/mine.py", 30, 30)), never_varied=("data_format", "eps"))
    run = results(domain={"attention": domain})
    assert headline(run) == (
        "mine.py computes the published mathematics for attention in what was run: lines 14 to 18 never ran, "
        "line 30 never ran, `data_format` was never varied and 1 more"
    )
    whole = "attention: lines 14 to 18 never ran, line 30 never ran, `data_format` was never varied,"
    assert f"not seen {whole}" in as_text(run)
    masked = Domain(unread=("key_padding_mask",), never_varied=("eps",))
    run = results(domain={"attention": masked})
    assert (run.exit_status, headline(run)) == (
        3,
        "mine.py was not judged whole: `key_padding_mask` was left out, `eps` was never varied; --partial accepts that",
    )
    assert headline(results(domain={"attention": masked}, partial=True)) == (
        "mine.py computes the published mathematics for attention in what was run: `key_padding_mask` was left out, "
        "`eps` was never varied"
    )


def test_what_no_formula_is_known_of_leaves_no_verdict_unless_accepted() -> None:
    muon = {"operation": "optimizer", "name": "Muon", "readings": {}, "deviations": [], "conventions": {}, "told": []}
    for beside, extra, status in (([], {}, 3), ([], {"partial": True}, 0), ([{**muon, "operation": "adam"}], {}, 0)):
        run = results([row("optimizer.contract")], **extra)
        run.implementation["recognised"] = [{**one, "form": "f", "everywhere": True} for one in (muon, *beside)]
        assert run.exit_status == status
    run.partial, run.implementation["recognised"] = False, run.implementation["recognised"][:1]
    assert headline(run) == (
        "mine.py was not judged whole: no formula of `Muon` is known, it was judged as any optimizer; --partial accepts"
        " that"
    )


def test_what_is_recognised_and_has_no_row_is_told() -> None:
    run = results([row(status=Status.NOT_PROVIDED)])
    run.implementation["recognised"] = [{"operation": "warmup_cosine", "name": "get_cosine"}]
    assert headline(run) == (
        "mine.py was not judged: no row of warmup_cosine, which it has, was asked for by --only and --dtype"
    )


def test_what_has_the_name_of_an_operation_and_is_not_judged_leaves_no_verdict_unless_accepted() -> None:
    softmax = {"name": "Softmax", "operation": "softmax", "reason": "it refuses 14 of the calls"}
    for refused, extra, status in (
        ({**softmax, "named": True}, {}, 3),
        ({**softmax, "named": True}, {"partial": True}, 0),
        ({**softmax, "named": False}, {}, 0),
        ({**softmax, "operation": "rope", "named": True}, {}, 0),
    ):
        run = results([row(), row("softmax.equation", Status.NOT_PROVIDED)], **extra)
        run.implementation["not_recognised"] = [refused]
        assert run.exit_status == status
        said = "was not judged whole: `Softmax` was not judged as softmax; --partial accepts that"
        assert (headline(run).partition("mine.py ")[2] == said) == (status == 3)


def test_everything_that_a_file_offers_is_named_once() -> None:
    pin = {"form": "f", "readings": {}, "deviations": [], "conventions": {}, "everywhere": True, "told": []}
    found = {
        "recognised": [{**pin, "operation": "attention", "name": name} for name in ("attend", "attend_too")],
        "not_recognised": [{"name": "Softmax", "operation": "softmax", "reason": "it asks for temperature"}],
        "unknown": ["train", "_helper"],
    }
    assert outside(found) == ["attend_too", "train"]
    run = results()
    run.implementation |= found
    told = [line for line in as_text(run).splitlines() if line.startswith("not judged")]
    assert told == [
        "not judged Softmax: why is said above, and by veriformer inspect",
        "not judged attend_too and train: outside the contract, or one of several",
    ]
    said = dict(recognised(found))
    assert (said["not judged"], said["no operation"]) == (
        "Softmax: not as softmax: it asks for temperature",
        "train: nothing of the contract",
    )


def test_junit_says_what_the_verdict_says(tmp_path: Path) -> None:
    weak = finding(weight=Weight.WEAKNESS, what="x² overflows", when=None)
    rows = [row(), row("attention.scale", Status.ADVICE), row("gelu.equation", Status.NOT_PROVIDED)]
    for run, kinds in (
        (results(rows, findings=[weak]), (0, 0, 1)),
        (results([row(), failing(message="no\x00 \ud800")], findings=[weak], fail_on=Weight.WEAKNESS), (2, 0, 0)),
        (results(domain={"attention": Domain(unread=("mask",))}), (0, 1, 0)),
    ):
        write_junit(run, tmp_path / "out.xml")
        suite = ElementTree.parse(tmp_path / "out.xml").getroot()[0]
        assert tuple(int(str(suite.get(name))) for name in ("failures", "errors", "skipped")) == kinds
        said = suite[-1][0].text or ""
        assert said.startswith(f"{word(run).upper()} {headline(run)}")
        assert len(suite) == sum(row.status is not Status.NOT_PROVIDED for row in run.results) + 1


def test_a_case_of_junit_has_the_facts_the_values_and_the_script(tmp_path: Path) -> None:
    write_junit(results([failing()], findings=[finding()]), tmp_path / "out.xml")
    case = ElementTree.parse(tmp_path / "out.xml").getroot()[0][0]
    assert (case.get("classname"), case.get("name")) == ("attention", "attention.scale[fp32]")
    write_junit(results([row(), row(candidate="mine")]), tmp_path / "both.xml")
    names = [one.get("name") for one in ElementTree.parse(tmp_path / "both.xml").getroot()[0]]
    assert names == ["attention.equation[fp32]", "attention.equation[fp32]@mine", "verdict"]
    told = case[0].text or ""
    assert all(f"{label}: {text}" in told for label, text in facts(finding()))
    for part in ("mask = None", "observed: [[0.25, 0.7310585786]]", "raise SystemExit('violated')"):
        assert part in told


def test_known_failures_have_a_section_of_their_own() -> None:
    waiver = {"reason": "fused kernel", "link": "https://a.b/1", "expires": "2027-06-30"}
    known = [row("attention.poison", Status.KNOWN_FAIL, dtype=dtype, waiver=waiver) for dtype in ("bf16", "fp16")]
    told = "attention.poison (bf16 and fp16): fused kernel; waived until 2027-06-30; https://a.b/1"
    assert [one.text for one in known_failures(results(known))] == [told]
    text = shown(results([row(), *known]), width=200)
    assert f"\n\nKNOWN FAILURES  fail as waived, each with a reason, a link and an end\n1. {told}" in text
    assert headline(results([row(), *known])).endswith("as far as it was tried: no finding; 1 known failure")
    assert "KNOWN FAILURES" not in as_text(results())


def test_findings_after_the_first_say_where_their_evidence_is() -> None:
    run = results([failing()], findings=[finding(str(i), what=f"fault {i}") for i in range(9)])
    text = shown(run, width=300)
    assert text.count("    result ") == 5
    assert "… the evidence of every finding: the file that --html FILE or --json FILE writes" in text


def test_where_gradients_do_not_hold_it_is_told() -> None:
    refused = row("attention.gradient", Status.NOT_PROVIDED, kind="gradient")
    assert scope(results([row(), refused])) == "Holds for attention, fp32, forward only"
    assert scope(results([failing()])) == ""
    lacking = row("gelu.gradient", Status.NOT_PROVIDED, kind="gradient")
    assert scope(results([row(), lacking])) == "Holds for attention, fp32"
    wrong = row("attention.gradient", Status.FAIL, kind="gradient")
    both = results([row(), wrong], findings=[finding("1", what="attention: a fault")])
    assert scope(both).startswith("Judged for fp32, forward and backward")


def test_sixty_findings_make_a_screen_and_not_a_scroll() -> None:
    text = as_text(results([failing()], findings=[finding(str(i), what=f"fault {i}") for i in range(60)]))
    assert len(text.splitlines()) < 60
    assert "15. attention: fault 14" in text
    assert "fault 15" not in text
    assert "… and 45 more findings; the evidence" in text


def test_many_remarks_are_counted() -> None:
    refused = {f"feature {i}": "no" for i in range(30)}
    text = as_text(results(domain={"attention": Domain(provided=("one",), refused=refused)}))
    assert "feature 5 (no)" in text
    assert "feature 6 (no)" not in text
    assert "… and 24 more" in text


def _hostile() -> Results:
    long = HOSTILE + "x" * 300_000
    wicked = finding(
        what=long,
        when=long,
        message=long,
        operation=HOSTILE,
        requirements=(long,),
        dtypes=(long,),
        precedents=(long,),
        suggestion={long: long},
        counterexample={"arguments": {HOSTILE: long}, "observed": long, "exact": None, "bound": None, "script": long},
    )
    domain = {HOSTILE: Domain(refused={long: long}, rules=(long,), constants={long: long}, precision={long: long})}
    rows = [row(), failing(message=long), row("softmax.law", Status.HARNESS_ERROR, message=long)]
    listed = finding("2", Weight.UNGUARDED, what=long, suggestion={long: long})
    return results(rows, target=long, seed=long, findings=[wicked, listed], domain=domain)


def test_hostile_text_neither_steers_the_terminal_nor_floods_it() -> None:
    for width in (40, 100):
        text = shown(_hostile(), width)
        assert set("\x1b\x07\u202e\u2066\ud800") & set(text) == set()
        assert (
            "\\x1b[31mred\\x07 \\u202egnirts\\u2066 \\ud800 [bold]markup[/bold] [/]" in " ".join(text.split())
            or width == 40
        )
        assert len(text) < 16_000
        text.encode()


@pytest.mark.whole
def test_rows_and_progress_are_clean_too(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    show_rows(_hostile(), Console(file=file, width=100))
    assert set("\x1b\x07\u202e\ud800") & set(file.getvalue()) == set()
    assert len(file.getvalue()) < 320_000  # a traceback of the suite itself is shown whole


def test_no_line_is_wider_than_the_terminal_and_colours_are_for_terminals_only() -> None:
    for width in (40, 80, 132):
        assert max(map(len, shown(several(), width).splitlines())) <= width
    assert "\x1b[" not in shown(several())
    assert "\x1b[" in shown(several(), force_terminal=True, color_system="standard")


def progress(some: list[Result], capsys: pytest.CaptureFixture[str], **options: Any) -> list[str]:
    """Return the text that is told while these rows come in."""
    with Live([one.operation for one in some], "mine.py", **options) as live:
        for one in some:
            live.tell(one)
    return capsys.readouterr().err.splitlines()


def test_a_row_that_fails_is_told_of_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [
        failing(),
        row(),
        row(status=Status.ADVICE, message="advice"),
        failing("attention.mask", message="long " * 99),
    ]
    _, first, second, last = progress(rows, capsys)
    assert first == "     FAIL attention.scale[fp32-cpu] result[0, 1]: observed 0.73, exact 0.5"
    assert second.startswith("     FAIL attention.mask[fp32-cpu] long long")
    assert len(second) <= 160
    assert last == "mine.py: 4/4  fail 2  advice 1"


def test_a_finding_is_told_with_its_call_while_the_run_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with Live(["attention"], "mine.py") as live:
        live.find(finding(where={"file": "mine.py", "line": 9}, fix="ask whether scale is None"))
    _, first, *others = capsys.readouterr().err.splitlines()
    assert first == "  FINDING attention: a scale of 0 is taken as not given (when: scale = 0)"
    assert [line.split()[0] for line in others] == ["where", "call", "result", "change"]
    assert others[0] == "          where   mine.py:9"


def test_a_finding_that_was_told_in_other_words_says_so_and_another_does_not() -> None:
    run = results([failing()], findings=[finding()])
    earlier = finding("f0", what="the result is wrong", when=None)
    assert "told as   attention: the result is wrong\n" in capture_text(lambda out: show(run, out, told=[earlier]))
    elsewhere = finding("f2", rows=("rope.equation[fp32-cpu]",))
    for told in ([], [finding("f0")], [elsewhere]):
        assert "told as" not in capture_text(lambda out, told=told: show(run, out, told=told))
    assert "told before, and no more: attention: a scale" in capture_text(lambda out: show(run, out, told=[elsewhere]))


def test_rows_of_operations_that_are_not_provided_are_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(), failing(), *(row(f"rope.{i}", status=Status.NOT_PROVIDED) for i in "abc")]
    first, _, last = progress(rows, capsys, lacking={"rope": "it is not there"})
    assert first == "mine.py: 2 rows; 3 are of operations that it does not provide"
    assert last == "mine.py: 2/2  fail 1"


def test_of_many_rows_that_fail_some_are_told_of_and_all_if_asked(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [failing(f"attention.law{i}") for i in range(30)]
    told = progress(rows, capsys)
    assert sum("FAIL" in line for line in told) == TOLD_AT_ONCE
    assert sum("are counted" in line for line in told) == 1
    assert sum("FAIL" in line for line in progress(rows, capsys, rows=True)) == 30


def test_a_run_that_does_not_hold_raises_its_findings() -> None:
    with pytest.raises(FindingsError) as caught:
        several().raise_for_findings()
    assert isinstance(caught.value, AssertionError)
    assert str(caught.value) == as_text(several())
    assert [found.id for found in caught.value.findings] == ["f1", "more", "leak", "fragile"]
    results().raise_for_findings()
    with pytest.raises(FindingsError, match="INCONCLUSIVE"):
        results([row(status=Status.NOT_PROVIDED)]).raise_for_findings()


def test_a_failing_row_names_its_finding_where_it_is_known() -> None:
    with pytest.raises(pytest.fail.Exception, match=r"attention.scale\[fp32-cpu\] fail \(finding f1\): result"):
        report_outcome(failing(finding="f1"))
    with pytest.raises(pytest.fail.Exception, match=r"attention.scale\[fp32-cpu\] fail: result"):
        report_outcome(failing())


def test_clean_keeps_what_is_seen() -> None:
    assert clean("λ ≠ 数\n\tü 😀") == "λ ≠ 数\n\tü 😀"
    assert one_line("a\n  b\tc", 100) == "a b c"
    assert one_line("abcdef", 4) == "abc…"


@pytest.mark.parametrize(
    ("observed", "exact", "bound", "ratios"),
    [
        ([1.0, 3.0], [1.0, 2.0], [1.0, 0.5], [2.0, 0.0]),
        ([1.0, 3.0], [1.0, 2.0], 0.5, [2.0, 0.0]),
        ("nan", 1.0, 1.0, [float("inf")]),
        (["nan", 3.0], [0.0, 2.0], [float("inf"), 0.5], [2.0, 0.0]),
        ([1.0], [1.0, 2.0], 1.0, []),
        ("raised", None, None, []),
    ],
)
def test_the_worst_number_comes_first(observed: Any, exact: Any, bound: Any, ratios: list[float]) -> None:
    assert [e.ratio for e in elements({"observed": observed, "exact": exact, "bound": bound})] == ratios


def test_what_else_a_file_offers_and_was_not_judged_stands_in_the_first_line() -> None:
    run = results()
    run.implementation |= {
        "not_recognised": [
            {"name": "ECELoss", "operation": "expected_calibration_error", "reason": "no call answered"}
        ],
        "unknown": ["plot", "_helper"],
    }
    assert "; ECELoss and plot not judged" in headline(run)
    assert "not judged" not in headline(results())
