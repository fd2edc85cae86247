"""Definitions and solutions of flashinfer-bench, which are compared as they are."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from veriformer.verify.commands import problem
from veriformer.verify.comparison import compare
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.locating import located
from veriformer.verify.targets.source_files import module_of
from veriformer.verify.targets.trace_files import definition_of

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


def test_a_solution_is_verified_with_its_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition, solution = _written(tmp_path, RIGHT)
    assert definition_of(Path(solution)) == Path(definition)
    assert problem.is_problem(solution)
    assert problem.solution_of(solution) == solution
    asked: list[Any] = []
    came = SimpleNamespace(exit_status=1)
    monkeypatch.setattr("veriformer.verify.comparison.compare", lambda *given, **_: asked.append(given) or came)
    monkeypatch.setattr("veriformer.verify.comparison.terminal.show", lambda *_: None)
    assert problem.status(solution, "cpu") == 1
    assert asked == [(definition, solution)]
    assert definition_of(Path(definition)) is None
    assert not problem.is_problem(definition)


def test_indices_come_from_a_recorded_workload(tmp_path: Path) -> None:
    definition, _ = _written(tmp_path, RIGHT)
    found = json.loads(Path(definition).read_text(encoding="utf-8"))
    found["inputs"] |= {"rows": {"shape": ["m"], "dtype": "int32"}, "scale": {"shape": None, "dtype": "float32"}}
    found["axes"]["m"] = {"type": "var"}
    with pytest.raises(ValueError, match="which values of int32 are valid"):
        _inputs_of(found, Path(definition))
    save_file({"kept": torch.tensor([2, 0, 1], dtype=torch.int32)}, tmp_path / "rows.safetensors")
    absent = {"rows": {"type": "safetensors", "path": "not_there.safetensors", "tensor_key": "kept"}}
    there = {"rows": {"type": "safetensors", "path": "rows.safetensors", "tensor_key": "kept"}}
    others = {"x": {"type": "random"}, "weight": {"type": "random"}, "scale": {"type": "scalar", "value": 0.125}}
    workloads = [{"axes": {"n": n, "m": 3}, "inputs": {**others, **rows}} for n, rows in ((9, absent), (4, there))]
    place = tmp_path / "workloads" / "rmsnorm" / "rmsnorm_h16.jsonl"
    place.parent.mkdir(parents=True)
    lines = [json.dumps({"definition": "rmsnorm_h16", "workload": one}) for one in workloads]
    place.write_text("\n".join(lines), encoding="utf-8")
    x, weight, rows, scale = _inputs_of(found, Path(definition))
    assert (x.shape, weight.shape, rows.tolist(), scale) == ((4, 16), (16,), [2, 0, 1], 0.125)


def _inputs_of(found: Any, path: Path) -> list[Any]:
    path.write_text(json.dumps(found), encoding="utf-8")
    inputs: list[Any] = module_of(path).get_inputs()
    return inputs


def test_what_cannot_be_loaded_says_why(tmp_path: Path) -> None:
    _, solution = _written(tmp_path, RIGHT, language="cuda")
    with pytest.raises(TargetError, match="only Python and Triton"):
        located(solution)
    other = tmp_path / "other.json"
    other.write_text("{}", encoding="utf-8")
    with pytest.raises(TargetError, match="expected a definition or a solution"):
        load(str(other))
