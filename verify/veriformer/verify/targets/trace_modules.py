"""Definitions and solutions of flashinfer-bench as modules: JSON files that hold the code of a kernel as text."""

from __future__ import annotations

import atexit
import inspect
import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors.torch import load_file

from veriformer.verify.targets.lookup import DEFINITION, SOLUTION
from veriformer.verify.targets.trace_files import ABOVE, file_of

SIZES = (5, 3, 7, 2)
"""Lengths of the axes that a definition leaves open, in its order: no two of them are equal."""

SCALAR = 0.5
"""A number that is no tensor: a scale, or an epsilon that is large enough to be seen."""

_LANGUAGES = ("python", "triton")
_SHORT = {"float8_e4m3": "float8_e4m3fn"}
"""Names of dtypes that PyTorch writes otherwise."""


def trace_module(path: Path, executed: Callable[[Path], ModuleType]) -> ModuleType:
    """The module of a definition, with ``run`` and ``get_inputs``, or of a solution, with ``run``.

    executed: the module in a Python file. Raises ValueError for other JSON, and for what cannot be called so.
    """
    found = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(found, dict) and found.keys() >= DEFINITION:
        return _definition(found, path, executed)
    if isinstance(found, dict) and found.keys() >= SOLUTION:
        return _solution(found, path, executed)
    raise ValueError(f"{path.name}: expected a definition or a solution of flashinfer-bench")


def _definition(found: Mapping[str, Any], path: Path, executed: Callable[[Path], ModuleType]) -> ModuleType:
    folder = _folder()
    (folder / f"{path.stem}_reference.py").write_text(found["reference"], encoding="utf-8")
    module = executed(folder / f"{path.stem}_reference.py")

    def get_inputs() -> list[Any]:
        try:
            sizes = _sizes(found)
            return [_drawn(name, entry, sizes) for name, entry in found["inputs"].items()]
        except ValueError:
            recorded = of_workloads(found, path)
            if recorded is None:
                raise
            return recorded

    get_inputs.__module__ = module.__name__
    vars(module)["get_inputs"] = get_inputs
    return module


def _solution(found: Mapping[str, Any], path: Path, executed: Callable[[Path], ModuleType]) -> ModuleType:
    language = str(found["spec"].get("language", "")).lower()
    if language not in _LANGUAGES:
        raise ValueError(f"{path.name}: its language is {language or 'not said'}; only Python and Triton can be loaded")
    definition = _solved(found["definition"], path)
    file, _, name = str(found["spec"]["entry_point"]).partition("::")
    folder = _folder()
    for source in found["sources"]:
        place = (folder / source["path"]).resolve()
        if not place.is_relative_to(folder):
            raise ValueError(f"{path.name}: its source {source['path']!r} lies outside of its folder")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source["content"], encoding="utf-8")
    entry = getattr(executed(folder / file), name)
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    run = _returning(entry, definition)
    run.__module__ = module.__name__
    vars(module)["run"] = run
    return module


def _returning(entry: Callable[..., Any], definition: Mapping[str, Any]) -> Callable[..., Any]:
    """The kernel as a function of the inputs alone: one that writes into tensors that it is given gets empty ones."""
    inputs, outputs = definition["inputs"], definition["outputs"]
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = [p for p in inspect.signature(entry).parameters.values() if p.kind in kinds]

    def run(*given: Any) -> Any:
        if len(taken) < len(inputs) + len(outputs):
            return entry(*given)
        sizes = dict(_constants(definition))
        tensors = [(entry, x) for entry, x in zip(inputs.values(), given, strict=True) if isinstance(x, torch.Tensor)]
        for one, x in tensors:
            if x.dtype != _dtype(one):  # what it writes into has the definition's dtype
                raise TypeError(f"expected {one['dtype']}, got {x.dtype}")
            sizes.update(zip(one["shape"] or (), x.shape, strict=True))
        device = next((x.device for _, x in tensors), torch.device("cpu"))
        made = [
            torch.empty([sizes[axis] for axis in one["shape"] or ()], dtype=_dtype(one), device=device)
            for one in outputs.values()
        ]
        entry(*given, *made)
        return made[0] if len(made) == 1 else tuple(made)

    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in inputs]
    )
    return run


def _solved(name: str, path: Path) -> Mapping[str, Any]:
    """The definition that a solution names."""
    file = file_of(name, path)
    if file is None:
        raise ValueError(f"{path.name}: its definition {name!r} was not found beside it, or in a folder 'definitions'")
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def of_workloads(found: Mapping[str, Any], path: Path) -> list[Any] | None:
    """Inputs as a workload of the definition records them: the first whose tensors are there; None without one.

    Workloads lie in a folder ``workloads`` beside ``definitions``, a line of JSON each; their paths begin there.
    """
    for root in [*path.resolve().parents][:ABOVE]:
        for file in sorted((root / "workloads").rglob(f"{path.stem}.jsonl")):
            for line in file.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line) if line.strip() else {}
                inputs = _recorded(found, entry.get("workload", entry), root)
                if inputs is not None:
                    return inputs
    return None


def _recorded(found: Mapping[str, Any], workload: Mapping[str, Any], root: Path) -> list[Any] | None:
    sizes = {**_sizes(found), **workload.get("axes", {})}
    given = []
    for name, entry in found["inputs"].items():
        said = workload.get("inputs", {}).get(name, {})
        kind = said.get("type")
        if kind == "scalar":
            given.append(said["value"])
        elif kind == "safetensors" and (root / said["path"]).is_file():
            given.append(load_file(root / said["path"])[said["tensor_key"]])
        elif kind == "random" and _dtype(entry).is_floating_point and _dtype(entry).itemsize > 1:
            given.append(_drawn(name, entry, sizes))
        else:
            return None
    return given


def _constants(found: Mapping[str, Any]) -> dict[str, int]:
    return {name: axis["value"] for name, axis in found["axes"].items() if axis["type"] == "const"}


def _sizes(found: Mapping[str, Any]) -> dict[str, int]:
    open_axes = [name for name, axis in found["axes"].items() if axis["type"] != "const"]
    return _constants(found) | {name: SIZES[i % len(SIZES)] for i, name in enumerate(open_axes)}


def _drawn(name: str, entry: Mapping[str, Any], sizes: Mapping[str, int]) -> Any:
    """A value for one input. Raises ValueError for indices and flags: nothing says which of them are valid."""
    dtype = _dtype(entry)
    if not dtype.is_floating_point or dtype.itemsize < 2:
        raise ValueError(f"input {name!r}: nothing says which values of {entry['dtype']} are valid; give --inputs FILE")
    if entry["shape"] is None:
        return SCALAR
    return torch.randn([sizes[axis] for axis in entry["shape"]]).to(dtype)


def _dtype(entry: Mapping[str, Any]) -> torch.dtype:
    found = getattr(torch, _SHORT.get(str(entry["dtype"]), str(entry["dtype"])), None)
    if not isinstance(found, torch.dtype):
        raise ValueError(f"dtype {entry['dtype']!r}: not one of PyTorch's")
    return found


def _folder() -> Path:
    """A folder that is there until the process ends: kernels are compiled from their files."""
    folder = Path(tempfile.mkdtemp(prefix="veriformer-trace-")).resolve()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
