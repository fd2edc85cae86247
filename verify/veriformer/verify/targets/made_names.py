"""Names of mutants, variants and sabotage adapters, and in texts of modules: checked before anything is imported."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path

from veriformer.spec.suggestion import meant

_BUGS = Path(__file__).parents[1] / "mutants" / "known_bugs.json"  # a file: its package imports PyTorch

_VARIANTS = """
    softmax-exp2 softmax-exp2-unfused softmax-dtype softmax-logsumexp softmax-reciprocal softmax-fp64
    logsumexp-running scores-base cross-entropy-gathered cross-entropy-logsumexp cross-entropy-chunked
    cross-entropy-log-softmax-twice cross-entropy-nan-without-target perplexity-divided-first layers-base
    norms-rsqrt layer-norm-welford layer-norm-fp64 layer-norm-one-pass rms-norm-library rms-norm-by-length
    clip-norm-of-norms causal-mask-tril causal-mask-distance attention-dense attention-flash
    attention-flash-single-keys attention-flash-wide-blocks attention-flash-exp2 attention-flash-backwards
    attention-flash-split-keys attention-prescaled attention-scale-shared attention-heads-expanded
    attention-heads-indexed attention-lowest-number attention-fp64 attention-normalised-last
    attention-decode-unmasked attention-bias-other-diagonal attention-bias-decode-shifted heads-base
    multi-head-library multi-head-sum multi-head-bilinear heads-fp64 linear-elu linear-sums linear-recurrent
    linear-weights block-token-by-token caches-base cache-ring cache-half-up cache-inverse-step cache-largest-entry
    training-base optimizers-lerp adam-folded optimizers-fp64 optimizers-flat adam-expm1 adam-reciprocal adam-fused
    adam-eps-hat adam-eps-inside adamw-decay-after sgd-first-velocity-gradient sgd-gradients-undamped
    schedules-rational warmup-numpy
    warmup-from-one accumulation-at-once accumulation-backwards accumulation-weighted accumulation-through-grad
    smooth-labels-lerp smooth-labels-added temperature-log-softmax temperature-exp2 temperature-divided-first
    calibration-base calibration-histogram calibration-edges masked-lm-functional masked-lm-weighted masked-lm-base
    top-k-ranks top-k-counting top-p-base top-p-rising top-p-size top-p-value greedy-maximum beam-base beam-batched
    bpe-base bpe-other-ties bpe-heap unigram-not-strict unigram-right unigram-path networks-base activations-erfc
    activations-sigmoid activations-dtype activations-fp64 silu-product squares-library squares-inner-product
    squares-one-by-one networks-library networks-by-units networks-fp64 experts-renormalised experts-by-token
    chance-other-streams chance-other-layouts tables-one-hot tables-in-chunks lm-head-fp64 positions-base
    rope-complex rope-three-products rope-matrix rope-fp32-angles rope-scaled-positions rope-half
    sinusoidal-one-by-one sinusoidal-fp32 sinusoidal-complex alibi-published alibi-fractions t5-powers t5-logarithm
    decoder-learned decoder-rope decoder-alibi decoder-relative decoder-post-norm decoder-window decoder-one-group
    decoder-fp32-softmax decoder-autocast decoder-bf16-layers decoder-bf16-keys decoder-row-by-row
    decoder-logits-alone encoder-learned encoder-relative encoder-post-norm encoder-decoder-learned
    encoder-decoder-relative encoder-decoder-rope
"""

_SABOTAGES = "zeros constant nan identity garbage"


@cache
def identifiers() -> dict[str, tuple[str, ...]]:
    """Return the identifiers of each family whose members are named one by one."""
    bugs = json.loads(_BUGS.read_text(encoding="utf-8"))
    return {
        "mutant": tuple(bug["id"] for bug in bugs if "operations" in bug),
        "variant": tuple(_VARIANTS.split()),
        "sabotage": tuple(_SABOTAGES.split()),
    }


def members() -> list[str]:
    """Return the names of all of them, such as ``mutant:GQA-01``."""
    return [f"{family}:{one}" for family, those in identifiers().items() for one in those]


def not_an_edit(identifier: str) -> str | None:
    """Return why no edit of our source has a name; None where it may be one (``MODULE:FUNCTION:BEFORE → AFTER``)."""
    module, _, rest = identifier.partition(":")
    function, _, edit = rest.partition(":")
    package = source_of("veriformer.impl")
    if package is None:
        return None
    modules = sorted(".".join(one.relative_to(package.parent).with_suffix("").parts) for one in _files(package.parent))
    if module not in modules:
        expected = "expected MODULE:FUNCTION:BEFORE → AFTER with a module of veriformer.impl"
        return f"{expected}, got {module!r}{meant(module, modules) or ', such as ' + modules[0]}"
    names = _functions(parse(package.parent.joinpath(*module.split(".")).with_suffix(".py")), "")
    if function not in names:
        return f"expected a function of {module}, got {function!r}{meant(function, names)}"
    return None if " → " in edit else f"expected BEFORE → AFTER behind {module}:{function}, got {edit!r}"


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*.py") if file.name != "__init__.py"]


def _functions(tree: ast.Module | ast.ClassDef | ast.FunctionDef, inside: str) -> list[str]:
    """Return the functions of a tree, those of classes and functions by a dotted name."""
    found: list[str] = []
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            name = f"{inside}{node.name}"
            found += [name] if isinstance(node, ast.FunctionDef) else []
            found += _functions(node, f"{name}.")
    return found


_OWN_WAYS = frozenset(("__getattr__", "globals", "vars", "locals", "exec", "eval", "setattr", "modules"))
"""A file that has one of these may define names that cannot be read off it."""


def source_of(name: str) -> Path | None:
    """Return the Python file of a module, found without importing a package; None where it has none, or is hidden."""
    folders, parts, found = [str(Path.cwd()), *sys.path], name.split("."), None
    for length in range(1, len(parts) + 1):
        try:
            found = PathFinder.find_spec(".".join(parts[:length]), folders)
            folders = list(found.submodule_search_locations or ()) if found is not None else []
        except (ImportError, KeyError):  # a part of a namespace, which needs it imported
            return None
    file = Path(found.origin) if found is not None and found.origin else None
    return file if file is not None and file.suffix == ".py" and file.is_file() else None


def parse(file: Path) -> ast.Module:
    """Return the tree of a file. Raises SyntaxError, OSError or ValueError."""
    return ast.parse(importlib.util.decode_source(file.read_bytes()), str(file))


def may_have(tree: ast.Module, attribute: str) -> bool:
    """Return whether a file binds a name at its top level, or in a way that cannot be read off it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
            return True
        if any(getattr(node, key, None) in _OWN_WAYS for key in ("id", "attr", "name")):
            return True
        if isinstance(node, ast.Global) and attribute in node.names:
            return True
    return attribute in set(bound(tree.body)) or attribute.startswith("__")


def bound(body: list[ast.stmt]) -> Iterator[str]:
    """Give the names that statements bind, those within functions and classes left out."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((one.asname or one.name).partition(".")[0] for one in node.names)
            continue
        for child in ast.walk(node):
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                yield child.id
            elif isinstance(child, ast.stmt) and child is not node:
                yield from bound([child])


def lacks(file: Path, attribute: str) -> bool:
    """Return whether it can be seen that the module in a file has no such name, nor its package a part of that name."""
    try:
        inside = file.name == "__init__.py" and any(file.parent.glob(f"{attribute}*"))
        return not inside and not may_have(parse(file), attribute)
    except (SyntaxError, OSError, ValueError):
        return False  # it is to be imported, which says more


def mentions(folder: Path, word: str) -> bool:
    """Return whether a package's own files or the stubs of its compiled parts have a word."""
    sought = re.compile(rb"\b" + re.escape(word.encode()) + rb"\b")
    files = [*folder.glob("*.py"), *folder.glob("*.pyi"), *folder.glob("*/*.pyi")]
    return any(sought.search(file.read_bytes()) for file in files)
