"""Misuses of the command line are refused with status 2, before PyTorch is imported, with a word that helps.

All are tried in one process, in which none may import a library of numbers.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from veriformer.spec.cli import SUMMARIES
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.lookup import check

TABLE = tomllib.loads((Path(__file__).parent / "data" / "misuses.toml").read_text(encoding="utf-8"))
MISUSES = dict(TABLE["misuses"])
HELPS = ["--help", "--version", "-h", *(f"{name} --help" for name in ("spec", "requirements", *SUMMARIES))]
HELPS += [
    f"bench {name} --help" for name in ("aa", "counts", "gpu-attention", "peers", "regression", "scaling", "tune")
]
BYTES = {"latin.py": b"# caf\xe9\n", "null.py": b"x = 1\x00\n"}
"""Files that are no text."""

TRIED = """
import contextlib, io, json, os, shlex, sys, time

from veriformer.spec.cli import main

home, found, heavy = os.getcwd(), {}, {"torch", "sympy", "pandas", "scipy", "hypothesis"}
for line in json.load(sys.stdin):
    words, said, given = shlex.split(line), io.StringIO(), {}
    while "=" in words[0]:
        name, _, given[name] = words.pop(0).partition("=")
    if words[0] == "cd":
        os.chdir(words[1])
        words = words[3:]
    os.environ.update(given)
    before = time.process_time()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            main(words, prog_name="veriformer")
        except SystemExit as end:
            status = end.code
    seconds = time.process_time() - before
    for name in given:
        del os.environ[name]
    os.chdir(home)
    imported = heavy.intersection(sys.modules)
    heavy -= imported
    found[line] = {"status": status, "said": said.getvalue(), "seconds": seconds, "imported": sorted(imported)}
json.dump(found, sys.stdout)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("misuses")
    for name, text in {**TABLE["files"], **BYTES}.items():
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    for name in ("bad_key", "bad_value", "bad_toml", "bad_type", "bad_table"):
        (home / name / "mine.py").write_text(TABLE["files"]["mine.py"])
    (home / "loop.py").symlink_to("loop.py")
    return home


@pytest.fixture(scope="module")
def tried(folder: Path) -> dict[str, dict[str, object]]:
    lines = json.dumps([*MISUSES, *HELPS])
    command = [sys.executable, "-c", TRIED]
    done = subprocess.run(command, input=lines, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(("line", "named"), MISUSES.items(), ids=list(MISUSES))
def test_a_misuse_is_refused_with_a_word_that_helps(tried: dict[str, dict[str, object]], line: str, named: str) -> None:
    answer = tried[line]
    assert answer["status"] == 2, answer["said"]
    assert named in str(answer["said"])
    assert "Traceback" not in str(answer["said"])
    assert answer["imported"] == []


@pytest.mark.parametrize("line", HELPS)
def test_help_is_told_without_libraries_of_numbers(tried: dict[str, dict[str, object]], line: str) -> None:
    answer = tried[line]
    assert answer["status"] == 0, answer["said"]
    assert answer["imported"] == []


def test_what_lies_beside_an_installed_module_does_not_hide_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json").mkdir()
    (tmp_path / "ast").write_text("a script")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    for word in ("json:dumps", "json", "ast:parse"):
        check(word)
    with pytest.raises(TargetError, match="expected Python files in the folder"):
        check("empty")
