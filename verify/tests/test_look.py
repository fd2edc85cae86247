"""A target is looked at in a process that loads it before the suite is imported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from veriformer.verify.engine import looking
from veriformer.verify.engine.look import Asked, Look
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.locating import locate

HEAVY = "import sys\n\nHEAVY = sorted({'torch', 'hypothesis'} & sys.modules.keys())\n"


def test_a_file_that_raises_is_told_before_any_library_of_numbers_is_imported(tmp_path: Path) -> None:
    file = tmp_path / "raises.py"
    file.write_text(HEAVY + "raise ValueError(HEAVY)\n")
    with pytest.raises(TargetError, match=r"ValueError: \[\] \(raises.py:4"), Look(str(file)) as look:
        look.load(meanwhile=lambda: pytest.fail("PyTorch is imported here as well"))


def test_what_takes_long_begins_when_a_file_imports_pytorch(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "torch.py").touch()  # in which there is nothing that would take long
    file, begun = tmp_path / "waits.py", tmp_path / "begun"
    file.write_text(
        f"import pathlib, sys, time\n\nsys.path.insert(0, {str(tmp_path / 'other')!r})\nimport torch\n\n"
        f"for _ in range(3000):\n    if pathlib.Path({str(begun)!r}).exists():\n        break\n"
        "    time.sleep(0.01)\nelse:\n    raise TimeoutError\n"
    )
    with Look(str(file)) as look:
        assert look.load(meanwhile=begun.touch) is look


@pytest.mark.whole
def test_what_a_file_sets_does_not_reach_the_imports_of_the_suite(tmp_path: Path) -> None:
    file, others = tmp_path / "mine.py", tmp_path / "others"
    others.mkdir()
    (others / "hypothesis.py").write_text("raise ImportError('another')\n")
    file.write_text(
        f"import sys\nimport warnings\n\nwarnings.simplefilter('error')\nsys.path.insert(0, {str(others)!r})\n\n\n"
        "def softmax(x, dim=-1):\n    return (x - x.logsumexp(dim, keepdim=True)).exp()\n"
    )
    with Look(str(file)).load() as look:
        described = look.describe(Asked("cpu", ("fp32",)))
    assert described["implementation"]["target"] == str(file)


@pytest.mark.whole
def test_a_file_that_asks_for_input_gets_none(tmp_path: Path) -> None:
    file = tmp_path / "asks.py"
    file.write_text("import torch\n\nanswer = input('ready?')\n")
    with pytest.raises(TargetError, match="EOFError"), Look(str(file)) as look:
        look.load()


@pytest.mark.whole
def test_a_file_where_the_suite_is_started_hides_no_module_of_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "typing.py").write_text("raise ImportError('another')\n")
    (tmp_path / "mine.py").write_text("x = 1\n")
    monkeypatch.chdir(tmp_path)
    with Look("mine.py") as look:
        assert look.load() is look


def test_folders_that_a_file_no_longer_searches_are_searched_last(tmp_path: Path) -> None:
    file, folders = tmp_path / "clears.py", [*sys.path]
    file.write_text("import sys\n\nsys.path.clear()\n")
    try:
        locate(str(file))
        assert set(folders) <= set(sys.path)
    finally:
        sys.path[:] = folders


@pytest.mark.parametrize(("beside", "hides"), [("queue.py", True), ("hypothesis.py", True), ("layers.py", False)])
def test_a_file_beside_modules_of_known_names_is_loaded_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: str, hides: bool
) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(pytest.__file__).parents[1])])  # without what other tests have added
    (tmp_path / "mine.py").write_text(HEAVY)
    (tmp_path / beside).touch()
    assert looking._hides_modules(str(tmp_path / "mine.py")) == hides
