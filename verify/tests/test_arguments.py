"""Arguments that are unusable before anything runs are refused with status 2 and a word on the reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from veriformer.verify.cli import verify


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--device", "cuda:77"], "cuda:77"),
        (["--device", "meta"], "holds no numbers"),
        (["--device", "abacus"], "abacus"),
        (["--json", f"{os.devnull}/out.json"], f"{os.devnull}/out.json"),
        (["--junit", f"{os.devnull}/out.xml"], f"{os.devnull}/out.xml"),
        (["--html", "."], "is a directory"),
        (["--waivers", f"{os.devnull}/waivers.toml"], "waivers"),
        (["--jobs", "0"], "--jobs"),
        (["--timeout", "never"], "never"),
        (["--profile", "slow"], "quick"),
    ],
)
def test_what_cannot_be_used_is_named(words: list[str], named: str) -> None:
    done = CliRunner().invoke(verify, ["impl:reference", "--only", "softmax.contract", *words])
    assert done.exit_code == 2
    assert named in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    "text", ["[[waiver]", "waiver = 3", "[[waiver]]\nrequirement = 5\n", "\x00", "[[waivers]]\n", "waiver = [3]"]
)
def test_waivers_that_cannot_be_read_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "waivers.toml").write_text(text)
    words = ["impl:reference", "--only", "softmax.contract", "--waivers", str(tmp_path / "waivers.toml")]
    done = CliRunner().invoke(verify, words)
    assert done.exit_code == 2
    assert "waivers" in done.output
    assert "Traceback" not in done.output


def test_the_folder_of_an_output_is_made(tmp_path: Path) -> None:
    words = ["impl:reference", "--only", "nothing at all", "--json", str(tmp_path / "new" / "out.json")]
    assert CliRunner().invoke(verify, words).exit_code == 2
    assert (tmp_path / "new").is_dir()
