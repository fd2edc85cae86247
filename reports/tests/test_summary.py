from xml.etree import ElementTree

from veriformer.bench.document import Benchmarks
from veriformer.reports.equations import EquationView, Specification
from veriformer.reports.mutation_matrix import Kills
from veriformer.reports.page import Inputs
from veriformer.reports.runs import label
from veriformer.reports.summary import SHOWN, code, fenced, summary, text
from veriformer.reports.verdicts import badge
from veriformer.verify.results import Status


def test_the_summary_tells_verdicts_violations_and_the_rest(run, row, violation, documents):
    findings = Inputs(
        runs=label([run([row(), violation()], target="a"), run(target="b", planned=4)]),
        benchmarks=Benchmarks.from_dict(documents["benchmarks"]),
        kills=Kills(documents["mutants"]),
        specification=Specification(tuple(map(EquationView, documents["spec"]["equations"]))),
    )
    words = summary(findings)
    assert words.startswith("## Veriformer: Of 2 runs, 1 invalid, 1 violated.\n")
    told = "**violated** a does not compute the published mathematics: 1 finding (1 wrong). Judged for fp32."
    assert f"| ✗ | `a` | {told} | 2 | 2 | – |" in words
    assert "| 4 | 1 | 3 not run |" in words
    assert "1. **wrong** softmax: not invariant to shifts\n" in words
    assert "   - result: at \\[1\\]: observed 0.25, exact 0.75, bound 1e-06" in words
    assert "   ```python\n   import torch\n" in words
    assert "derivation steps: 1 refuted, 1 confirmed numerically, 1 proved for all n; errata: 1." in words
    assert "1 of 2 mutants killed" in words
    assert "survivor `SM-99`" in words
    assert "1 confirmed, 1 refuted, 1 not countable" in words


def test_findings_come_before_rows_and_are_counted_where_there_are_many(run, violation, finding):
    found = [finding(f"f{i}", rows=("softmax.shift[fp32-cpu]",)) for i in range(60)]
    advice = finding("later", "unguarded")
    words = summary(Inputs(runs=label([run([violation()], findings=[advice, *found])])))
    assert words.index("### Findings") < words.index("1. **wrong** softmax: fault f0") < words.index("**Advice**")
    assert f"{SHOWN}. **wrong**" in words
    assert f"{SHOWN + 1}. **wrong**" not in words
    assert f"… and {60 - SHOWN} more findings." in words
    assert "**Advice**\n\n- softmax: fault later" in words


def test_hostile_text_is_escaped(run, violation, hostile):
    words = summary(Inputs(runs=label([run([violation(message=hostile)], target=hostile)])))
    table = [line for line in words.splitlines() if line.startswith("| ✗")]
    assert len(table) == 1
    assert table[0].replace("\\|", "").count("|") == 7
    assert "\\<script\\>" in words


def test_one_script_stands_for_all_rows_of_a_finding(run, violation, finding, row):
    rows = [violation("softmax.shift", dtype) for dtype in ("fp32", "fp16", "bf16")]
    script = {**vars(rows[0].counterexample), "script": "print(1)"}
    found = finding(rows=tuple(one.key for one in rows), counterexample=script)
    assert summary(Inputs(runs=label([run(rows, findings=[found])]))).count("```python") == 1


def test_known_failures_and_errors_have_sections(run, row):
    waiver = {"reason": "why", "link": "https://a.b/1", "expires": "2027-01-01"}
    rows = [
        row("softmax.a", status=Status.KNOWN_FAIL, waiver=waiver),
        row("softmax.b", status=Status.HARNESS_ERROR, message="Trace\nKeyError: 1"),
    ]
    words = summary(Inputs(runs=label([run(rows)])))
    assert "### Known failures\n\n- softmax.a (fp32): why; waived until 2027-01-01; https://a.b/1\n" in words
    assert "- `softmax.b[fp32-cpu]` on `mine.py`: KeyError: 1\n" in words


def test_escapes():
    assert text("a|b\n*c*") == r"a\|b \*c\*"
    assert code("a`b|c") == r"`` a`b\|c ``"
    assert fenced("x = '```'") == ["````python", "x = '```'", "````"]
    assert fenced("x") == ["```python", "x", "```"]


def words_of(image):
    return ElementTree.fromstring(image).get("aria-label")


def test_the_badge_shows_the_worst_verdict(run, row, violation, hostile):
    def shown(*runs):
        return words_of(badge(Inputs(runs=label(list(runs))).verdicts))

    good, bad, short = run(target="a"), run([violation()], target="b"), run(target="c", planned=3)
    assert shown(good) == "veriformer: 1 of 1 hold"
    assert shown(run([row(), row("softmax.a", status=Status.VACUOUS)])) == "veriformer: 1 of 2 hold"
    assert shown(good, bad) == "veriformer: 1 finding: b"
    assert shown(good, bad, run([violation()], target="d")) == "veriformer: 2 findings: 2 runs"
    assert shown(good, bad, short) == "veriformer: invalid: c"
    assert shown() == "veriformer: nothing run"
    assert hostile in shown(run([violation()], target=hostile))
