"""Findings for reviews of code: SARIF by the schema of its standard, and annotations of GitHub Actions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.made_results import HOSTILE, failing, finding, results, row, several
from veriformer.spec.requirement import Weight
from veriformer.spec.requirements import REQUIREMENTS
from veriformer.verify.presentation.sarif import locate_findings, sarif, workflow_commands, write_sarif
from veriformer.verify.results import Results, Status

SCHEMA = json.loads((Path(__file__).parent / "data" / "sarif-2.1.0.json").read_text(encoding="utf-8"))


def of_weights(**fields: Any) -> Results:
    """A run with a finding of every weight."""
    return results([failing()], findings=[finding(weight.value, weight, **fields) for weight in Weight])


def hostile() -> Results:
    """A run whose every text is of somebody else's making."""
    what = {"what": HOSTILE, "when": HOSTILE, "message": HOSTILE, "requirements": (HOSTILE,)}
    where = {"file": "a b/ü%:,.py", "line": 3}
    return results([failing(message=HOSTILE)], target=HOSTILE, findings=[finding(**what, where=where)])


@pytest.mark.parametrize(
    "run", [results(), several(), of_weights(), hostile(), results(planned=2)], ids=lambda run: run.verdict
)
def test_every_run_is_valid_by_the_schema(run, tmp_path):
    write_sarif([run, several()], tmp_path / "new" / "found.sarif")
    written = json.loads((tmp_path / "new" / "found.sarif").read_text(encoding="utf-8"))
    jsonschema.Draft4Validator(SCHEMA).validate(written)


@pytest.mark.whole
def test_every_requirement_is_a_rule_with_its_statement():
    found = [finding(one.slug, requirements=(one.slug,)) for one in REQUIREMENTS]
    log = sarif([results([failing()], findings=found)])
    jsonschema.Draft4Validator(SCHEMA).validate(log)
    rules = {rule["id"]: rule for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert {one.slug: one.statement for one in REQUIREMENTS} == {
        slug: rule["fullDescription"]["text"] for slug, rule in rules.items()
    }


def test_a_result_has_rule_level_message_and_place():
    where = {"file": "src/mine.py", "line": 7}
    (run,) = sarif([results([failing()], findings=[finding(where=where)])])["runs"]
    (result,) = run["results"]
    assert (result["ruleId"], result["level"]) == ("attention.scale", "error")
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["message"]["text"].startswith("wrong: attention: a scale of 0 is taken as not given")
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "src/mine.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {"startLine": 7}


def test_levels_are_by_weight_and_by_what_violates():
    run = of_weights()
    levels = {one.finding.weight: one.level for one in locate_findings(run)}
    assert [levels[weight] for weight in Weight] == ["error", "error", "error", "warning", "note", "note"]
    run.strict = True
    assert {one.level for one in locate_findings(run)} == {"error"}


def test_violated_rows_without_a_finding_are_told_at_their_operation():
    run = results([row("softmax.equation", Status.CRASH)])
    run.implementation["where"] = {"softmax": {"file": "mine.py", "line": 9}}
    assert [(one.rule, one.file, one.line) for one in locate_findings(run)] == [("softmax.equation", "mine.py", 9)]


@pytest.mark.parametrize(("target", "file"), [("a/b.py:softmax", "a/b.py"), ("b.py", "b.py"), ("torch", None)])
def test_what_has_no_place_is_told_of_the_file_that_was_judged(target, file):
    run = results([failing()], target=target, findings=[finding()])
    assert [one.file for one in locate_findings(run)] == [file]


def test_files_are_below_the_root_of_the_checkout(tmp_path, monkeypatch):
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    run = results([failing()], findings=[finding(where={"file": "mine.py", "line": 1})])
    assert [one.file for one in locate_findings(run)] == ["sub/mine.py"]


def test_a_run_without_a_verdict_is_no_success_and_says_why():
    (run,) = sarif([results(planned=2)])["runs"]
    (invocation,) = run["invocations"]
    assert not invocation["executionSuccessful"]
    assert "INVALID" in invocation["toolExecutionNotifications"][0]["message"]["text"]


def test_annotations_have_file_line_and_all_facts_on_one_line():
    where = {"file": "src/a,b.py", "line": 7}
    (line,) = workflow_commands(results([failing()], findings=[finding(where=where, what="100% wrong")]))
    head, _, said = line.removeprefix("::error ").partition("::")
    assert head == "file=src/a%2Cb.py,line=7,title=veriformer%3A attention.scale"
    assert said.startswith("wrong: attention: 100%25 wrong")
    assert "%0Aresult: " in said


def test_nobody_elses_text_begins_a_command_of_its_own():
    lines = list(workflow_commands(hostile()))
    assert len(lines) == 1
    assert "\n" not in lines[0]
    assert "\r" not in lines[0]


def test_advice_is_a_notice_and_a_weakness_a_warning():
    kinds = [line.split(" ")[0] for line in workflow_commands(of_weights())]
    assert kinds == ["::error"] * 3 + ["::warning"] + ["::notice"] * 2
