"""Imports point one way: import-linter holds the packages to the contracts of pyproject.toml; files form no circle."""

from __future__ import annotations

import shutil
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from veriformer.spec import requirements
from veriformer.verify.catalogue import checks
from veriformer.verify.contract.signatures import AREA
from veriformer.verify.operations import registry

ROOT = Path(__file__).parents[2]
PACKAGES = ("spec", "impl", "verify", "bench", "reports")


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {
        "PYTHONPATH": ":".join(str(root / package) for package in PACKAGES),
        "PATH": str(Path(sys.executable).parent),
    }
    command = [
        str(Path(sys.executable).parent / "lint-imports"),
        "--no-cache",
        "--config",
        str(root / "pyproject.toml"),
    ]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.whole
def test_every_arrow_is_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout
    assert "9 kept, 0 broken" in done.stdout


@pytest.mark.whole
@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("spec/veriformer/spec/scores/softmax.py", "import torch", "spec imports none"),
        ("impl/veriformer/impl/precision.py", "import veriformer.spec.scores.softmax", "impl imports none"),
        ("verify/veriformer/verify/judging/judge.py", "import veriformer.impl", "verify imports spec"),
        ("verify/veriformer/verify/laws/pairs.py", "import veriformer.verify.operations.registry", "verify's folders"),
        ("bench/veriformer/bench/metered_costs.py", "import veriformer.impl", "bench imports spec"),
        ("verify/veriformer/workers/session.py", "import veriformer.verify.results", "workers imports none"),
        ("reports/veriformer/reports/summary.py", "import veriformer.verify.judging.trial", "reports imports spec"),
    ],
)
def test_an_arrow_the_wrong_way_is_seen(tmp_path: Path, file: str, line: str, contract: str) -> None:
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package / "veriformer", tmp_path / package / "veriformer", ignore=shutil.ignore_patterns("*.pyc")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    with (tmp_path / file).open("a") as source:
        source.write(f"\n{line}\n")
    done = lint(tmp_path)
    assert done.returncode == 1
    assert any(contract in row and "BROKEN" in row for row in done.stdout.splitlines()), done.stdout


def imports() -> dict[str, set[str]]:
    """Return the modules that each module imports, at its top or later; by name too, where modules are looked for."""
    import grimp  # with import-linter; the tests that need a GPU are collected where it is not installed

    packages = (f"veriformer.{package}" for package in PACKAGES)
    graph = grimp.build_graph(*packages, cache_dir=None, exclude_type_checking_imports=True)
    found = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    found[requirements.__name__] |= {f"{requirements.__name__}.{name}" for name in requirements._MODULES}
    found[registry.__name__] |= {registry.home(operation).__name__ for operation in AREA}
    found[checks.__name__] |= {module.__name__ for module in checks.modules()}
    return found


def test_no_file_imports_in_a_circle() -> None:
    found = imports()
    assert len(found) > 500
    TopologicalSorter(found).prepare()


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("verify.judging.judge", "verify.judging.trial"),
        ("verify.operations.layers.silu", "verify.families.judged"),
        ("spec.requirements.scores", "spec.requirements"),
    ],
)
def test_a_circle_is_seen(module: str, imported: str) -> None:
    found = imports()
    found[f"veriformer.{module}"].add(f"veriformer.{imported}")
    with pytest.raises(CycleError):
        TopologicalSorter(found).prepare()
