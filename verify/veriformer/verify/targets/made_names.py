"""Names of the mutants, variants and sabotage adapters, to be checked before any is built or PyTorch is imported."""

from __future__ import annotations

import ast
import json
from functools import cache
from pathlib import Path

from veriformer.spec.suggestion import meant
from veriformer.verify.targets.module_text import parsed, source_of

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
    names = _functions(parsed(package.parent.joinpath(*module.split(".")).with_suffix(".py")), "")
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
