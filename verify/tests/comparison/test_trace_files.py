"""Definitions and solutions of flashinfer-bench, which are compared as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from veriformer.verify.comparison import compare
from veriformer.verify.targets.loading import TargetError, load, located

pytestmark = pytest.mark.usefixtures("warm")

RIGHT = "torch.mul(x, torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight, out=out)"
WRONG = "torch.mul(x, torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6) * weight, out=out)"


def _written(folder: Path, body: str, **spec: Any) -> tuple[str, str]:
    definition = {
        "name": "rmsnorm_h16",
        "op_type": "rmsnorm",
        "axes": {"n": {"type": "var"}, "h": {"type": "const", "value": 16}},
        "inputs": {
            "x": {"shape": ["n", "h"], "dtype": "float32"},
            "weight": {"shape": ["h"], "dtype": "float32"},
        },
        "outputs": {"out": {"shape": ["n", "h"], "dtype": "float32"}},
        "reference": (
            "import torch\n\n\ndef run(x, weight):\n"
            "    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * weight\n"
        ),
    }
    solution = {
        "name": "mine",
        "definition": "rmsnorm_h16",
        "spec": {"language": "python", "entry_point": "main.py::run", **spec},
        "sources": [{"path": "main.py", "content": f"import torch\n\n\ndef run(x, weight, out):\n    {body}\n"}],
    }
    files = folder / "definitions" / "rmsnorm" / "rmsnorm_h16.json", folder / "solutions" / "mine.json"
    for file, content in zip(files, (definition, solution), strict=True):
        file.parent.mkdir(parents=True)
        file.write_text(json.dumps(content), encoding="utf-8")
    return str(files[0]), str(files[1])


@pytest.mark.parametrize(("body", "agrees"), [(RIGHT, True), (WRONG, False)])
def test_a_solution_is_compared_with_its_definition(tmp_path: Path, body: str, agrees: bool) -> None:
    assert (compare(*_written(tmp_path, body), seconds=20).exit_status == 0) == agrees


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    _, solution = _written(tmp_path, RIGHT, language="cuda")
    with pytest.raises(TargetError, match="only Python and Triton"):
        located(solution)
    other = tmp_path / "other.json"
    other.write_text("{}", encoding="utf-8")
    with pytest.raises(TargetError, match="expected a definition or a solution"):
        load(str(other))
