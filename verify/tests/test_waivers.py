"""Waivers turn known failures into known failures, and nothing else into anything."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.made_results import row as result
from veriformer.verify import load
from veriformer.verify.catalogue.selection import checks, select
from veriformer.verify.engine import waivers
from veriformer.verify.engine.check_run import reproduces, run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.judging.row import plan
from veriformer.verify.results import Status

TODAY = date(2026, 11, 20)
TABLE = """
[[waiver]]
requirement = "softmax.equation"
dtype = "float32"
reason = "known"
link = "https://example.org/1"
expires = 2027-01-01
"""


def rows() -> list:  # type: ignore[type-arg]
    return plan(checks(), ["fp32", "fp64"])


def write(folder: Path, text: str) -> Path:
    path = folder / "waivers.toml"
    path.write_text(text)
    return path


def test_a_covered_failure_is_known_and_a_covered_pass_unexpected(tmp_path: Path) -> None:
    read = waivers.read(write(tmp_path, TABLE), rows())
    given = [result("softmax.equation", status) for status in (Status.FAIL, Status.PASS, Status.BLOCKED)]
    given.append(result("softmax.equation", Status.FAIL, dtype="fp64"))
    found = [waivers.apply(row, read, TODAY).status for row in given]
    assert found == [Status.KNOWN_FAIL, Status.UNEXPECTED_PASS, Status.BLOCKED, Status.FAIL]


def test_a_file_may_say_from_which_weight_on_findings_violate(tmp_path: Path) -> None:
    path = write(tmp_path, f'fail_on = "weakness"\n{TABLE}')
    assert (waivers.fail_on(path), len(waivers.read(path, rows()))) == ("weakness", 1)
    assert waivers.fail_on(write(tmp_path, TABLE)) is None
    assert waivers.fail_on(None) is None
    for word in ('"leak"', "3"):
        with pytest.raises(waivers.WaiverError, match="fail_on: expected one of weakness, imprecise, unguarded, got"):
            waivers.fail_on(write(tmp_path, f"fail_on = {word}\n{TABLE}"))


def test_a_waiver_past_its_end_covers_nothing_and_says_so(tmp_path: Path) -> None:
    read = waivers.read(write(tmp_path, TABLE), rows())
    found = waivers.apply(result("softmax.equation", Status.FAIL), read, date(2027, 1, 2))
    assert found.status is Status.FAIL
    assert "2027-01-01" in str(found.message)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("softmax.equation", "softmax.equations", "covers no row"),
        ('reason = "known"', "", "reason"),
        ('reason = "known"', 'reason = ""', "reason"),
        ("2027-01-01", '"soon"', "expires"),
        ("float32", "float33", "float33"),
        ("dtype", "dtypes", "dtypes"),
        ("[[waiver]]", "[[waiver", "waivers"),
    ],
)
def test_a_file_that_means_nothing_is_refused(tmp_path: Path, old: str, new: str, named: str) -> None:
    with pytest.raises(waivers.WaiverError, match=named):
        waivers.read(write(tmp_path, TABLE.replace(old, new)), rows())


def test_a_shipped_target_brings_its_own() -> None:
    shipped = waivers.of_run("torch", None, rows())
    assert {"cross_entropy.hidden_classes", "layer_norm.range"} <= {waiver.requirement for waiver in shipped}
    slugs = {check.requirement.slug for check in checks()}
    assert {waiver.requirement for waiver in shipped} <= slugs
    assert waivers.of_run("impl", None, rows()) == []
    assert waivers.of_run("some/torch.py", None, rows()) == []


SCRIPT = "raise SystemExit('violated' if {} else 0)\n"


def test_a_stored_counterexample_is_run_first(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(SCRIPT.format("True"))
    path = write(tmp_path, TABLE + 'example = "example.py"\n')
    chosen = plan(select(["softmax.equation"]), ["fp32", "fp64"])
    stored = waivers.stored(waivers.read(path, chosen), chosen)
    assert list(stored) == ["softmax.equation[fp32-cpu]"]
    (row,) = (row for row in chosen if row.key in stored)
    still = run_check(row, load("impl:reference"), PROFILES["quick"], "slug", {}, stored=stored[row.key])
    assert (still.status, still.examples) == (Status.FAIL, 1)
    gone = run_check(row, load("impl:reference"), PROFILES["quick"], "slug", {}, stored=SCRIPT.format("False"))
    assert gone.status is Status.PASS
    assert gone.examples > 1


@pytest.mark.parametrize(("added", "named"), [('example = "none.py"', "none.py"), ('example = "example.py"', "dtype")])
def test_a_stored_counterexample_must_be_there_and_have_a_dtype(tmp_path: Path, added: str, named: str) -> None:
    (tmp_path / "example.py").write_text(SCRIPT.format("True"))
    table = TABLE if named == "none.py" else TABLE.replace('dtype = "float32"\n', "")
    with pytest.raises(waivers.WaiverError, match=named):
        waivers.read(write(tmp_path, f"{table}{added}\n"), rows())


def test_every_stored_counterexample_of_a_shipped_target_still_shows_its_failure() -> None:
    shipped = [waiver for waiver in waivers.of_run("torch", None, rows()) if waiver.example is not None]
    assert shipped
    for waiver in shipped:
        assert reproduces(str(waiver.example)) is not None, waiver.requirement
