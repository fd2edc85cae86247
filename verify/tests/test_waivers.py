"""Waivers turn known failures into known failures, and nothing else into anything."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from veriformer.verify import waivers
from veriformer.verify.catalogue import checks
from veriformer.verify.results import Result, Status
from veriformer.verify.row import plan

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


def result(status: Status, dtype: str = "fp32") -> Result:
    return Result(
        requirement="softmax.equation", operation="softmax", equations=[], dtype=dtype, device="cpu", status=status
    )


def test_a_covered_failure_is_known_and_a_covered_pass_unexpected(tmp_path: Path) -> None:
    read = waivers.read(write(tmp_path, TABLE), rows())
    given = [result(Status.FAIL), result(Status.PASS), result(Status.FAIL, "fp64"), result(Status.BLOCKED)]
    found = [waivers.apply(row, read, TODAY).status for row in given]
    assert found == [Status.KNOWN_FAIL, Status.UNEXPECTED_PASS, Status.FAIL, Status.BLOCKED]


def test_a_waiver_past_its_end_covers_nothing_and_says_so(tmp_path: Path) -> None:
    read = waivers.read(write(tmp_path, TABLE), rows())
    found = waivers.apply(result(Status.FAIL), read, date(2027, 1, 2))
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
    assert {"attention.hidden_poison", "clip_grad_norm.range"} <= {waiver.requirement for waiver in shipped}
    slugs = {check.requirement.slug for check in checks()}
    assert {waiver.requirement for waiver in shipped} <= slugs
    assert waivers.of_run("impl", None, rows()) == []
    assert waivers.of_run("some/torch.py", None, rows()) == []
