"""Whatever a target does costs its own rows and no other, and a run that is stopped goes on where it was."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import made_results
from tests.warm import INTERPRETER
from veriformer.verify.engine.journal import Journal, JournalError
from veriformer.verify.engine.plan import Plan
from veriformer.verify.results import validate

pytestmark = pytest.mark.usefixtures("warm")
HERE = Path(__file__).parent
HOSTILE = str(HERE / "hostile.py")
ROOTS = [str(HERE.parents[1] / package) for package in ("spec", "impl", "verify", "bench", "reports")]
GOOD = f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom hostile import softmax\n"
SLOW = (
    GOOD.replace("softmax", "softmax as fast")
    + "import time\ndef softmax(z, dim=-1):\n    time.sleep(0.005)\n    return fast(z, dim)\n"
)


def command(*words: object, python: str | None = None) -> list[str]:
    return [python or sys.executable, "-m", "veriformer.verify", *map(str, words)]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*ROOTS, os.environ.get("PYTHONPATH", "")])}


def verify(*words: object, timeout: float = 240, python: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words, python=python), env=environment(), capture_output=True, text=True, timeout=timeout, check=False
    )


def statuses(file: Path) -> Mapping[str, set[str]]:
    found = defaultdict(set)
    for row in json.loads(file.read_text())["results"]:
        found[row["operation"]].add(row["status"])
    return found


@pytest.mark.whole
def test_the_terminal_says_what_was_written_and_what_was_not_judged(tmp_path: Path) -> None:
    mine, page = tmp_path / "mine.py", tmp_path / "there" / "page.html"
    mine.write_text("import torch\n\n\ndef gelu(x):\n    return torch.nn.functional.gelu(x)\n")
    done = verify(mine, "--profile", "quick", "--dtype", "fp32", "--jobs", 1, "--html", page)
    assert f"wrote {page}\n" in done.stderr
    assert done.stderr.count("wrote ") == 1
    assert page.read_text().startswith("<!doctype html>")
    assert "not provided the implementation's gelu takes no approximate (" in done.stderr
    assert "HOLDS " in done.stderr
    assert "other operations of the contract" in done.stderr
    assert "gelu.equation[" not in done.stderr


MISBEHAVING = (
    *("softmax", "logsumexp", "cross_entropy", "attention", "perplexity", "rms_norm", "causal_mask", "layer_norm"),
    "clip_grad_norm.purity",
)


@pytest.mark.whole
def test_every_kind_of_misbehaviour_costs_its_own_rows(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    words = ["--profile", "quick", "--dtype", "fp32", "--timeout", 2, "--jobs", 2, "--json", file]
    done = verify(HOSTILE, *words, "--only", *MISBEHAVING)
    document = json.loads(file.read_text())
    validate(document)
    found = statuses(file)
    assert document["planned"] == document["run"] == len(Plan(target="", only=MISBEHAVING, dtypes=("fp32",)).rows())
    assert done.returncode == 1, done.stderr
    assert found["softmax"] == {"pass"}, [r for r in document["results"] if r["operation"] == "softmax"]
    assert found["logsumexp"] == {"timeout", "blocked"}
    assert found["cross_entropy"] == {"crash", "blocked"}
    assert found["attention"] == {"timeout", "blocked"}
    assert found["perplexity"] == {"fail", "blocked"}
    assert found["rms_norm"] == {"fail", "blocked"}
    assert found["causal_mask"] == {"fail", "blocked"}
    assert "fail" in found["layer_norm"]
    purity = next(r for r in document["results"] if r["requirement"] == "clip_grad_norm.purity")
    assert purity["status"] == "fail"
    assert "Traceback" not in done.stderr


@pytest.mark.whole
@pytest.mark.parametrize(
    ("source", "status", "word"),
    [
        ("raise RuntimeError('no luck')", 2, "no luck"),
        ("import os; os._exit(0)", 2, "ended its process"),
        ("import sys; sys.exit(3)", 2, "SystemExit"),
        ("x = 1", 3, "it has none of the operations that were asked for"),
        ("def sofmax(z): ...", 3, "did you mean softmax where it says sofmax?"),
        ("def sparse_softmax(z): ...", 3, "it has none of the operations that were asked for\n"),
        ("from torch.nn import Softmax", 3, "it has none of the operations that were asked for\n"),
        (GOOD + "CLAIMS = {'dtype': ['fp32']}", 2, "did you mean 'dtypes'"),
        (GOOD + "CLAIMS = dict(dtype=['fp32'])", 2, "did you mean 'dtypes'"),
        ('import torch\nraise ValueError("σ² ≤ 0")', 2, '(mine.py:2: raise ValueError("σ² ≤ 0"))'),
    ],
)
def test_what_loading_may_meet(tmp_path: Path, source: str, status: int, word: str) -> None:
    (tmp_path / "mine.py").write_text(source)
    done = verify(tmp_path / "mine.py", "--profile", "quick", "--only", "softmax", "--dtype", "fp32", "--jobs", 1)
    assert done.returncode == status, done.stderr
    assert word in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_that_raises_is_imported_once(tmp_path: Path) -> None:
    counted = f"import torch\nopen({str(tmp_path / 'imports')!r}, 'a').write('x')\ntorch.nn.Linear(3)\n"
    (tmp_path / "mine.py").write_text(counted)
    done = verify(tmp_path / "mine.py", "--profile", "quick", "--only", "softmax", "silu", "--jobs", 2)
    assert done.returncode == 2
    assert "(mine.py:3: torch.nn.Linear(3))" in done.stderr
    assert (tmp_path / "imports").read_text() == "x"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["nowhere.py"], "no such file"),
        (["no.such.module"], "impl:reference"),
        (["impl", "--only", "sofmax"], "sofmax"),
        (["impl", "--dtype", "fp12"], "fp12"),
        (["impl", "--profile", "slow"], "quick"),
        (["mutant:XX-99"], "no such mutant"),
    ],
)
def test_unusable_arguments_are_named(words: list[str], named: str) -> None:
    done = verify(*words)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr


def timeless(file: Path) -> dict[str, Any]:
    document = json.loads(file.read_text())
    for key in ("started", "duration_s"):
        del document[key]
    for row in document["results"]:
        del row["seconds"]
    return document


@pytest.mark.whole
def test_killed_in_the_middle_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    words = [tmp_path / "slow.py", "--profile", "quick", "--only", "softmax", "--dtype", "fp32", "--jobs", 2, "--json"]
    whole, cut = tmp_path / "whole.json", tmp_path / "cut.json"
    assert verify(*words, whole).returncode == 0
    journal = tmp_path / "cut.json.partial"
    process = subprocess.Popen(
        command(*words, cut, python=INTERPRETER), env=environment(), stderr=subprocess.DEVNULL, start_new_session=True
    )
    wait_for(lambda: journal.is_file() and journal.read_text().count('"requirement"') >= 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = journal.read_text().count('"requirement"')
    assert 3 <= before < json.loads(whole.read_text())["planned"]
    assert not cut.exists()
    assert verify(*words, cut, "--resume", cut).returncode == 0
    assert timeless(cut) == timeless(whole)
    assert not journal.exists()


@pytest.mark.whole
def test_interrupted_saves_what_was_finished_and_tells_the_findings_so_far(tmp_path: Path) -> None:
    wrong = "import torch\ndef logsumexp(z, dim=-1):\n    return 2 * torch.logsumexp(z, dim)\n"
    (tmp_path / "slow.py").write_text(SLOW.replace("0.005", "0.05") + wrong)
    file = tmp_path / "cut.json"
    words = [tmp_path / "slow.py", "--profile", "quick", "--only", "softmax", "logsumexp.equation"]
    words += ["--dtype", "fp64", "--jobs", 2, "--json", file]
    process = subprocess.Popen(
        command(*words, python=INTERPRETER),
        env=environment(),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs ignore Ctrl-C and hand that down; tests that run in one still need it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    journal = tmp_path / "cut.json.partial"
    wait_for(lambda: journal.is_file() and '"fail"' in (text := journal.read_text()) and '"pass"' in text)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=60)
    document = json.loads(file.read_text())
    assert process.returncode == 130, told
    assert 2 <= document["run"] < document["planned"]
    assert [one["requirements"] for one in document["findings"]] == [["logsumexp.equation"]]
    assert "logsumexp: " in told.partition("WRONG")[2]
    assert "--resume" in told
    assert journal.is_file()


def wait_for(condition: Any, seconds: float = 240) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the run never came so far"
        time.sleep(0.02)


@pytest.mark.whole
def test_equal_seeds_give_equal_runs_and_another_seed_another(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(GOOD)
    files = {}
    for name, seed, python in (("a", "7", None), ("b", "7", INTERPRETER), ("c", "8", None)):  # b hashes otherwise
        files[name] = tmp_path / f"{name}.json"
        words = ["--profile", "quick", "--only", "softmax.equation", "--dtype", "fp32", "--jobs", 1, "--seed", seed]
        verify(tmp_path / "good.py", *words, "--json", files[name], python=python)
    a, b, c = (timeless(files[name]) for name in "abc")
    assert a == b
    assert [r["worst_ratio"] for r in a["results"]] != [r["worst_ratio"] for r in c["results"]]
    assert {r["worst_size"] is None for r in a["results"] if r["kind"] == "equation"} == {False}


# The journal


def test_a_line_cut_off_by_a_sudden_end_is_ignored(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.begin(Plan(target="t"))
    journal.add(made_results.row("softmax.equation"))
    with journal.path.open("a") as file:
        file.write('{"requirement": "softmax.simp')
    assert list(Journal(journal.path).results()) == ["softmax.equation[fp32-cpu]"]


def test_a_journal_that_a_target_removes_goes_on(tmp_path: Path) -> None:
    ours, theirs = Journal(tmp_path / "in" / "j"), Journal(tmp_path / "in" / "j")
    ours.begin(Plan(target="t"))
    theirs.add(made_results.row("softmax.equation"))
    assert len(ours.results()) == 1
    shutil.rmtree(tmp_path / "in")
    assert len(ours.results()) == 1
    theirs.add(made_results.row("softmax.simplex"))
    assert len(ours.results()) == 2


def test_a_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "j")
    journal.begin(Plan(target="t", seed="1"))
    with pytest.raises(JournalError, match="seed: '1' there, '2' here"):
        Journal(journal.path).resume(Plan(target="t", seed="2"))
    with pytest.raises(JournalError, match="no such file"):
        Journal(tmp_path / "nothing").resume(Plan(target="t"))
    (tmp_path / "other").write_text("{}\n")
    with pytest.raises(JournalError, match="journal"):
        Journal(tmp_path / "other").resume(Plan(target="t"))
