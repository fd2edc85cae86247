"""Not a test: the code and the printed outputs of a page in Markdown, run in the order of the page, in one folder.

Blocks of Python, TOML, YAML and JSON are parsed; those whose first line is a comment with a file name (``# mine.py``)
are written to that file, and other blocks of Python are run. A block ``console`` is a session of a shell: what a
command prints is compared with the lines below it, in which ``...`` stands for any text. A comment
``<!-- not run: REASON -->`` before a block says why it is not run.
"""

from __future__ import annotations

import doctest
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
_NAMED = re.compile(r"# ([\w./-]+)\n")
_REASON = re.compile(r"<!-- not run: (.+?) -->", re.DOTALL)
_SEPARATOR = "\x1e"
_READ: Mapping[str, Callable[[str], object]] = {
    "python": lambda text: compile(text, "block", "exec"),
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
    "json": json.loads,
}
_DRAWN = ("mermaid",)
"""Languages of blocks that are pictures."""


@dataclass(frozen=True)
class Block:
    """Code of a page. reason: why it is not run; empty where it is."""

    place: str
    language: str
    text: str
    reason: str


def blocks(page: Path) -> Iterator[Block]:
    """Yield the blocks of code of a page, pictures left out."""
    reason = ""
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "html_block" and (found := _REASON.search(token.content)):
            reason = found[1]
        elif token.type in ("fence", "code_block"):
            place = f"{page.relative_to(ROOT)}:{token.map[0] + 1 if token.map else 0}"
            if token.info not in _DRAWN:
                yield Block(place, token.info, token.content, reason)
            reason = ""


def run(page: Path, folder: Path) -> None:
    """Write and run the blocks of a page in a folder. Raises AssertionError where something is not as printed."""
    environment = _make_environment(folder / ".tools")
    work = folder / page.stem
    work.mkdir()
    for block in blocks(page):
        assert block.language in (*_READ, "console"), f"{block.place}: {block.language!r} is not run, and has no reason"
        if block.language in _READ:
            _READ[block.language](block.text)
        if block.reason:
            continue
        if block.language == "console":
            _run_session(block, work, environment)
        elif block.language == "python" or _NAMED.match(block.text):
            _write_or_run(block, work, environment)


def _write_or_run(block: Block, work: Path, environment: Mapping[str, str]) -> None:
    named = _NAMED.match(block.text)
    file = work / (named[1] if named else "block.py")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(block.text, encoding="utf-8")
    if not named:
        done = _run_script(f"python {file}", work, environment)
        assert done.returncode == 0, f"{block.place}:\n{done.stdout}"


def _run_session(block: Block, work: Path, environment: Mapping[str, str]) -> None:
    """Run a session and compare, command by command."""
    assert block.text.startswith("$ "), f"{block.place}: expected a command after '$ ' in the first line"
    told = [part.partition("\n") for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]]
    keep = f"__status=$?; printf '{_SEPARATOR}'; (exit $__status)"
    done = _run_script("\n".join(f"{command}\n{keep}" for command, _, _ in told), work, environment)
    printed = done.stdout.split(_SEPARATOR)
    assert len(printed) == len(told) + 1, f"{block.place}: it ended early\n{done.stdout}"
    for (command, _, expected), observed in zip(told, printed, strict=False):
        found = "\n".join(line.rstrip() for line in observed.splitlines()).strip("\n") + "\n"
        wanted = expected.strip("\n") + "\n"
        agrees = doctest.OutputChecker().check_output(wanted, found, doctest.ELLIPSIS)
        assert agrees, f"{block.place}: $ {command}\nprints\n{found}\nand not\n{wanted}"


def _run_script(script: str, work: Path, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", "-c", script]
    return subprocess.run(
        command, cwd=work, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def _make_environment(tools: Path) -> dict[str, str]:
    """Return an environment in which this tree is installed, commands and entry points, whatever else is installed."""
    metadata = tools / "veriformer-0.1.0.dist-info"
    if not metadata.is_dir():
        metadata.mkdir(parents=True)
        project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        (metadata / "METADATA").write_text("Name: veriformer\nVersion: 0.1.0\n", encoding="utf-8")
        groups = {"console_scripts": project["scripts"], **project["entry-points"]}
        lines = (
            f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in entries.items()) for group, entries in groups.items()
        )
        (metadata / "entry_points.txt").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
        _write_program(tools / "python", f'exec "{sys.executable}" "$@"')
        main = "from veriformer.spec.cli import main; main(prog_name='veriformer')"
        (tools / "command.py").write_text(main, encoding="utf-8")
        _write_program(tools / "veriformer", f'exec "{sys.executable}" "{tools / "command.py"}" "$@"')
        _write_program(tools / "pytest", f'exec "{sys.executable}" -m pytest -p no:cacheprovider -W ignore "$@"')
    return {
        **os.environ,
        "PATH": os.pathsep.join((str(tools), os.environ["PATH"])),
        "PYTHONPATH": os.pathsep.join(
            (str(tools), *(str(ROOT / root) for root in ("spec", "impl", "verify", "bench", "reports")))
        ),
        "VERIFORMER_JOBS": "1",
        "VERIFORMER_CACHE": str(tools / "cache"),
        "PYTHONWARNINGS": "ignore",
    }


def _write_program(file: Path, line: str) -> None:
    file.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
    file.chmod(0o755)
