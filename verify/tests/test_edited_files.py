"""Files that are written from others by edits."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.edited_files import edited, written
from tests.faulty_forms import faulty_forms, form_file

TEXT = "def halved(x):\n    y = x / 2\n    return y\n"
HALVED_TWICE = [{"old": "x / 2", "new": "x / 4"}, {"old": "    return y\n", "new": ""}]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "halved.py"
    found.write_text(TEXT, encoding="utf-8")
    return found


def test_edits_are_applied_in_turn(file: Path) -> None:
    assert edited(file, HALVED_TWICE) == "def halved(x):\n    y = x / 4\n"
    assert edited(file, []) == file.read_text(encoding="utf-8") == TEXT


@pytest.mark.parametrize(("old", "times"), [("z", 0), ("y", 2), ("x / 2", 0)])
def test_an_edit_of_what_is_not_there_once_is_refused(file: Path, old: str, times: int) -> None:
    said = re.escape(f"{file}: expected once, got {times} times: {old!r}")
    with pytest.raises(ValueError, match=said):
        edited(file, [HALVED_TWICE[0], {"old": old, "new": "1"}])


def test_a_file_is_written_once_under_its_own_name(file: Path) -> None:
    path = written("halved__twice", file, HALVED_TWICE)
    assert path.name == "halved__twice.py"
    assert path.read_text(encoding="utf-8") == edited(file, HALVED_TWICE)
    began = path.stat().st_mtime_ns
    assert written("halved__twice", file, HALVED_TWICE) == path
    assert path.stat().st_mtime_ns == began


@pytest.mark.parametrize("name", faulty_forms())
def test_a_faulty_form_is_the_correct_one_with_its_edits(name: str) -> None:
    correct, _, _ = name.partition("_faulty")
    assert form_file(name).stem == name
    assert form_file(name).read_bytes() != form_file(correct).read_bytes()


def test_what_is_written_is_removed_as_the_process_ends(file: Path) -> None:
    program = "import sys, edited_files, pathlib; print(edited_files.written('twice', pathlib.Path(sys.argv[1]), []))"
    ended = subprocess.run(
        [sys.executable, "-c", program, file], cwd=Path(__file__).parent, capture_output=True, text=True, check=True
    )
    path = Path(ended.stdout.strip())
    assert path.name == "twice.py"
    assert not path.parents[1].exists()
