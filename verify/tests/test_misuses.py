"""Misuses of the command line are refused with status 2, before PyTorch is imported, with a word that helps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from veriformer.spec.cli import main

GOOD = "import torch\n\n\ndef softmax(x, dim=-1):\n    return torch.softmax(x, dim)\n"
WAIVER = '[[waiver]]\nrequirement = "{}"\nreason = "known"\nlink = "https://example.org"\nexpires = 2099-01-01\n'
FILES = {
    "mine.py": GOOD,
    "syntax.py": "def softmax(x:\n    return x\n",
    "claims.py": GOOD + "CLAIMS = {'dtype': ['fp32']}\n",
    "sofmax.toml": WAIVER.format("sofmax.equation"),
    "reasons.toml": WAIVER.format("softmax.equation").replace("reason =", "reasons ="),
    "soon.toml": WAIVER.format("softmax.equation").replace("2099-01-01", '"soon"'),
    "brackets.toml": "[[waiver]",
    "weight.toml": 'fail_on = "weaknes"\n',
    "empty.json": "{}",
    "no.json": "{",
    "plan.toml": 'targets = ["mine.py"]\nprofile = ["quick"]\n',
}
V = ("verify", "mine.py")
MISUSES: list[tuple[tuple[str, ...], str]] = [
    # commands
    (("verfy",), "did you mean 'verify'"),
    (("verify_", "mine.py"), "did you mean 'verify'"),
    (("reprot",), "did you mean 'report'"),
    (("nothing",), "expected one of verify, inspect"),
    (("--verison",), "--version"),
    # targets
    (("verify",), "TARGET"),
    (("verify", "nosuch.py"), "no such file"),
    (("verify", "mien.py"), "did you mean 'mine.py'"),
    (("verify", "nosuch.py:softmax"), "no such file"),
    (("verify", "folder/mine.py"), "no such file"),
    (("verify", "mine.py:sofmax"), "did you mean 'softmax'"),
    (("verify", "mine.py:nothing"), "no attribute 'nothing'"),
    (("verify", "syntax.py"), "syntax.py:1: def softmax(x:"),
    (("verify", "claims.py"), "did you mean 'dtypes'"),
    (("verify", "no_such_module"), "path/to/mine.py"),
    (("verify", "no_such_module.part:thing"), "pkg.mod:thing"),
    (("verify", "impl:tile"), "did you mean 'impl:tiled'"),
    (("verify", "tourch"), "did you mean 'torch'"),
    (("verify", "sofmax.toml"), "path/to/mine.py"),
    (("verify", "no.json"), "no.json"),
    (("verify", "mine.py", "other.py"), "other.py"),
    # selections
    ((*V, "--only", "atention"), "did you mean 'attention'"),
    ((*V, "--only", "attention.causalty"), "did you mean 'attention.causality'"),
    ((*V, "--only", "softmax", "atention"), "did you mean 'attention'"),
    ((*V, "--only", "999"), "24a"),
    ((*V, "--only", "softmx.*"), "softmax"),
    ((*V, "--only"), "--only"),
    # options
    ((*V, "--profile", "quik"), "did you mean 'quick'"),
    ((*V, "--porfile", "quick"), "--profile"),
    ((*V, "--dtype", "fp33"), "did you mean 'fp32'"),
    ((*V, "--dtype", "int8"), "fp64, fp32, bf16, fp16"),
    ((*V, "--dtype", "bfloat"), "or 'bfloat16'"),
    ((*V, "--device", "cud"), "did you mean 'cuda'"),
    ((*V, "--device", "gpu"), "cuda"),
    ((*V, "--device", "cuda:one"), "number"),
    ((*V, "--device", "meta"), "holds no numbers"),
    ((*V, "--jobs", "0"), "--jobs"),
    ((*V, "--jobs", "many"), "--jobs"),
    ((*V, "--timeout", "0"), "--timeout"),
    ((*V, "--timeout", "soon"), "soon"),
    ((*V, "--fail-on", "weaknes"), "did you mean 'weakness'"),
    ((*V, "--seed"), "--seed"),
    ((*V, "--strict", "--stirct"), "--strict"),
    ((*V, "--shard", "3/2", "--json", "o.json"), "K/N"),
    ((*V, "--shard", "1/2"), "--json"),
    ((*V, "--shard", "1/2", "--json", "o.json", "--html", "o.html"), "merge"),
    ((*V, "--balance", "empty.json"), "--shard"),
    ((*V, "--files", "nosuch.whl"), "nosuch.whl"),
    # files
    ((*V, "--json", "mine.py/o.json"), "cannot be written"),
    ((*V, "--html", "."), "directory"),
    ((*V, "--junit", "/dev/null/o.xml"), "cannot be written"),
    ((*V, "--resume", "nosuch.json"), "no such file to resume from"),
    ((*V, "--resume", "empty.json"), ".partial"),
    ((*V, "--waivers", "nosuch.toml"), "nosuch.toml"),
    ((*V, "--waivers", "sofmax.toml"), "did you mean 'softmax.equation'"),
    ((*V, "--waivers", "reasons.toml"), "did you mean 'reason'"),
    ((*V, "--waivers", "soon.toml"), "expires"),
    ((*V, "--waivers", "brackets.toml"), "brackets.toml"),
    ((*V, "--waivers", "weight.toml"), "weakness"),
    # other commands
    (("inspect", "nosuch.py"), "no such file"),
    (("inspect", "mine.py", "--device", "cud"), "did you mean 'cuda'"),
    (("compare", "mine.py"), "CANDIDATE"),
    (("compare", "nosuch.py", "mine.py"), "no such file"),
    (("compare", "mine.py", "mine.py:sofmax"), "did you mean 'softmax'"),
    (("merge", "nosuch.json"), "nosuch.json"),
    (("report", "no.json"), "no.json"),
    (("diff", "nosuch.json", "empty.json"), "nosuch.json"),
    (("campaign", "plan.toml", "--hours", "1"), "profile"),
    (("requirements", "sofmax"), "did you mean 'softmax'"),
    (("spec", "adamww"), "did you mean 'adamw'"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def said(words: tuple[str, ...]) -> Result:
    return CliRunner().invoke(main, list(words))


@pytest.mark.parametrize(("words", "named"), MISUSES, ids=[" ".join(words) for words, _ in MISUSES])
def test_a_misuse_is_refused_with_a_word_that_helps(folder: Path, words: tuple[str, ...], named: str) -> None:
    done = said(words)
    assert done.exit_code == 2, done.output
    assert named in done.output
    assert "Traceback" not in done.output


LOADED = """
import sys
from veriformer.spec.cli import main

try:
    main(sys.argv[1:])
except SystemExit as end:
    heavy = {"torch", "numpy", "sympy", "pandas", "hypothesis"}.intersection(sys.modules)
    sys.exit(f"{sorted(heavy)} imported" if heavy else end.code)
"""


@pytest.mark.parametrize(
    ("words", "status"),
    [(("--help",), 0), (("verify", "--help"), 0), (("verify", "mine.py", "--waivers", "sofmax.toml"), 2)],
)
def test_no_library_of_numbers_is_imported_before_arguments_are_checked(
    folder: Path, words: tuple[str, ...], status: int
) -> None:
    done = subprocess.run([sys.executable, "-c", LOADED, *words], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
