"""Known failures, written down with a reason and an end: a TOML file of ``[[waiver]]`` tables.

[[waiver]]
requirement = "attention.poison"     # a requirement or a glob
dtype = "bf16"                       # optional: only in this dtype
reason = "the fused kernel multiplies hidden values by zero"
link = "https://github.com/pytorch/pytorch/issues/101967"
expires = 2027-06-30
example = "poison.py"                # optional, wanted where only some inputs fail: the counterexample's script, a file
                                     # beside this one; it is run first

Above them may stand ``fail_on = "weakness"``: the least weight that violates, as ``--fail-on`` has it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veriformer.spec.requirement import Weight
from veriformer.spec.suggestion import meant
from veriformer.verify import targets
from veriformer.verify.contract import formats
from veriformer.verify.results import VIOLATIONS, Result, Status

if TYPE_CHECKING:
    from veriformer.verify.judging.row import CheckRun

_REQUIRED = {"requirement": str, "reason": str, "link": str, "expires": date}
_EXPECTED = {
    "requirement": 'a requirement or a glob, such as "attention.poison"',
    "reason": 'the reason why it is known to fail, such as "the fused kernel multiplies hidden values by zero"',
    "link": 'the address where it is tracked, such as "https://github.com/OWNER/REPOSITORY/issues/1"',
    "expires": "the day on which the waiver ends, such as 2027-06-30 without quotes",
}
_KEYS = ("waiver", "fail_on")
_OPTIONAL = ("dtype", "example")


class WaiverError(ValueError):
    """The waiver file cannot be used; the message names the table and its error."""


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """Waiver of a known failure. It covers rows by requirement (or a glob) and, where given, by dtype.

    example: the text of the script that shows it.
    """

    requirement: str
    reason: str
    link: str
    expires: date
    dtype: str | None = None
    example: str | None = None

    def covers(self, requirement: str, dtype: str | None) -> bool:
        """Return whether a row falls under this waiver."""
        return fnmatchcase(requirement, self.requirement) and self.dtype in (None, dtype)


def of_run(target: str, path: Path | None, rows: Sequence[CheckRun]) -> list[Waiver]:
    """Return the waivers of a run: those of the user's file, and those that ship with the target."""
    shipped = targets.known_failures(target)
    return [*(read(path, rows) if path else []), *(_tables(shipped) if shipped else [])]


def read(path: Path, rows: Sequence[CheckRun]) -> list[Waiver]:
    """Read a waiver file. Raises WaiverError for a malformed table, or one that covers no row of the run."""
    return check(path, [(row.check.requirement.slug, row.dtype) for row in rows])


def check(path: Path, rows: Iterable[tuple[str, str]]) -> list[Waiver]:
    """Read a waiver file for rows that are known by requirement and dtype. Raises WaiverError as ``read`` does."""
    waivers, known = _tables(path), list(rows)
    for number, waiver in enumerate(waivers, 1):
        if not any(waiver.covers(*row) for row in known):
            slugs = dict.fromkeys(slug for slug, _ in known)
            raise WaiverError(
                f"waivers: {path}: table {number} ({waiver.requirement}) covers no row of this run"
                f"{meant(waiver.requirement, slugs)}: mend or remove it"
            )
    return waivers


def fail_on(path: Path | None) -> str | None:
    """Return the least weight that violates, if a waiver file sets it. Raises WaiverError for an unknown weight."""
    said = _document(path).get("fail_on") if path else None
    known = [weight.value for weight in Weight if weight.advice]
    if said is not None and said not in known:
        raise WaiverError(f"waivers: {path}: fail_on: expected one of {', '.join(known)}, got {said!r}")
    return said


def stored(waivers: Sequence[Waiver], rows: Sequence[CheckRun]) -> dict[str, str]:
    """Return the scripts of stored counterexamples, by the keys of their rows."""
    return {
        row.key: waiver.example
        for row in rows
        for waiver in waivers
        if waiver.example is not None and waiver.covers(row.check.requirement.slug, row.dtype)
    }


def _document(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # ValueError: no TOML, or no text
        raise WaiverError(f"waivers: {path}: expected a TOML file of tables [[waiver]]: {error}") from error


def _tables(path: Path) -> list[Waiver]:
    document = _document(path)
    unknown, tables = document.keys() - set(_KEYS), document.get("waiver", [])
    if unknown or not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        key = min(unknown, default="")
        found = f"the key {key!r}{meant(key, _KEYS)}" if unknown else repr(tables)
        raise WaiverError(f"waivers: {path}: expected tables [[waiver]], and fail_on above them, got {found}")
    whole = (_with_example(table, f"waivers: {path}: table {number}", path) for number, table in enumerate(tables, 1))
    return [_waiver(table, f"waivers: {path}: table {number}") for number, table in enumerate(whole, 1)]


def _with_example(table: dict[str, Any], where: str, path: Path) -> dict[str, Any]:
    if "example" not in table:
        return table
    if "dtype" not in table:
        raise WaiverError(f"{where}: dtype: expected beside an example, which has one; got none")
    try:
        return {**table, "example": (path.parent / str(table["example"])).read_text(encoding="utf-8")}
    except (OSError, ValueError) as error:
        raise WaiverError(f"{where}: example: expected a script beside it: {error}") from error


def _waiver(table: dict[str, Any], where: str) -> Waiver:
    known = (*_REQUIRED, *_OPTIONAL)
    unknown = table.keys() - set(known)
    if unknown:
        raise WaiverError(
            f"{where}: unknown key {sorted(unknown)[0]!r}{meant(sorted(unknown)[0], known)}; "
            f"expected no other than {', '.join(known)}"
        )
    for key, kind in _REQUIRED.items():
        if not isinstance(table.get(key), kind) or not table[key]:
            got = repr(table[key]) if key in table else "none"
            raise WaiverError(f"{where}: {key}: expected {_EXPECTED[key]}, got {got}")
    try:
        return Waiver(**{**table, "dtype": formats.canonical(table["dtype"])} if "dtype" in table else table)
    except (ValueError, TypeError, AttributeError) as error:
        raise WaiverError(f"{where}: {error}") from error


def apply(result: Result, waivers: Sequence[Waiver], today: date) -> Result:
    """Apply the waivers to a result: a covered violation becomes a known failure, a covered pass an unexpected pass.

    A waiver past its end covers nothing, and the row's message says so.
    """
    waiver = next((w for w in waivers if w.covers(result.requirement, result.dtype)), None)
    if waiver is None:
        return result
    unmet = result.status in VIOLATIONS or result.status is Status.ADVICE
    if unmet and waiver.expires < today:
        return replace(result, message=f"{result.message} (its waiver ended on {waiver.expires}: {waiver.reason})")
    if unmet:
        told = f"{waiver.reason} ({waiver.link}): {result.message}"
        known = {"reason": waiver.reason, "link": waiver.link, "expires": waiver.expires.isoformat()}
        return replace(result, status=Status.KNOWN_FAIL, message=told, waiver=known)
    if result.status is Status.PASS:
        return replace(
            result, status=Status.UNEXPECTED_PASS, message=f"passes, though waived ({waiver.reason}): remove the waiver"
        )
    return result
