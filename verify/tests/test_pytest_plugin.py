"""``pytest --veriformer``: requirements as tests among those of a project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from veriformer.verify import pytest_plugin

CODE = """import torch


def softmax(z, dim=-1):
    e = torch.exp(z)
    return e / e.sum(dim, keepdim=True)
"""
TABLE = '[tool.veriformer]\nonly = ["softmax.equation", "softmax.range"]\ndtype = "fp32"\nprofile = "quick"\n'


class Noted:
    """Outcomes of the tests of a run."""

    def __init__(self) -> None:
        self.ended: dict[str, str] = {}
        self.places: dict[str, tuple[str, int | None]] = {}
        self.markers: dict[str, dict[str, object]] = {}
        self.said = ""

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.markers = {item.nodeid: mark.kwargs for item in session.items for mark in item.iter_markers("veriformer")}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self.ended[report.nodeid] = report.outcome
            self.places[report.nodeid] = (Path(report.location[0]).name, report.location[1])


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Run pytest in a project of somebody else's."""
    (tmp_path / "mine.py").write_text(CODE)
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    (tmp_path / "pyproject.toml").write_text(
        f"[tool.pytest.ini_options]\naddopts = '--strict-markers --import-mode=importlib'\n{TABLE}"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def run(*words: str) -> tuple[int, Noted]:
        noted = Noted()
        status = pytest.main(["-pno:cacheprovider", "-Wignore", *words], plugins=[pytest_plugin, noted])
        noted.said = "".join(capsys.readouterr())
        return int(status), noted

    return run


@pytest.mark.whole
def test_requirements_run_beside_the_tests_of_the_project(ran):
    status, noted = ran("--veriformer", "mine.py")
    assert status == 1
    assert noted.ended == {
        "test_own.py::test_own": "passed",
        "mine.py::softmax.contract[fp32]": "passed",
        "mine.py::softmax.equation[fp32]": "passed",
        "mine.py::softmax.range[fp32]": "failed",
    }
    assert noted.places["mine.py::softmax.range[fp32]"] == ("mine.py", 3)
    assert "softmax.range[fp32-cpu] fail: " in noted.said
    assert noted.markers["mine.py::softmax.range[fp32]"] == {
        "requirement": "softmax.range", "operation": "softmax", "weight": "fragile", "dtype": "fp32",
    }  # fmt: skip


@pytest.mark.whole
def test_markers_keywords_and_words_choose_among_all(ran):
    status, noted = ran("--veriformer", "mine.py", "-m", "veriformer(weight='wrong')", "-k", "equ")
    assert (status, list(noted.ended)) == (0, ["mine.py::softmax.equation[fp32]"])


@pytest.mark.whole
def test_a_waiver_makes_a_known_failure(ran, tmp_path: Path):
    waiver = 'requirement = "softmax.range"\nreason = "later"\nlink = "https://example.org/1"\nexpires = 2999-01-01\n'
    (tmp_path / "known.toml").write_text(f"[[waiver]]\n{waiver}")
    status, noted = ran("--veriformer", "mine.py --waivers known.toml --only softmax.range", "-m", "veriformer")
    assert (status, set(noted.ended.values())) == (0, {"passed"}), noted.said


@pytest.mark.whole
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("absent.py", "no such file"),
        ("mine.py --only softmx", "softmax"),
        ("mine.py --profle quick", "--profile"),
        ("mine.py --json out.json", "--json is for 'veriformer verify' alone"),
        ("", "TARGET"),
        ("mine.py --help", "expected a target"),
    ],
)
def test_words_that_cannot_be_used_end_pytest_with_its_status_for_that(ran, words: str, said: str):
    status, noted = ran("--veriformer", words)
    assert status == pytest.ExitCode.USAGE_ERROR
    assert said in noted.said
    assert "Traceback" not in noted.said


def test_a_project_that_does_not_use_it_pays_for_no_library():
    program = (
        "import sys, pytest; before = set(sys.modules)\n"
        "import veriformer.verify.pytest_plugin\n"
        "print({name.partition('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "{'veriformer'}\n"
