"""A finding as a Python script that loads the candidate, repeats the call, and ends with 1 while it still differs."""

from __future__ import annotations

import base64
import io
import zlib
from pathlib import Path
from typing import Any

import torch

from veriformer.verify.comparison.causes import Cause
from veriformer.verify.comparison.evidence import Evidence, Observed
from veriformer.verify.comparison.holding import Prepared

_LARGEST = 2**19
"""Characters of arguments and weights up to which a script carries them; else it compares anew."""

_ANEW = '''"""{title}"""

import sys

from veriformer.verify.comparison import compare

found = compare({reference!r}, {candidate!r}, inputs={inputs!r}, device={device!r})
print(*(f"{{one.weight}}: {{one.what}}" for one in found.findings), sep="\\n")
sys.exit(any(one.id == {slug!r} for one in found.findings))
'''

_ALONE = '''"""{title}"""

import base64
import io
import random
import zlib
from math import inf, nan

import numpy as np
import torch

{loader}
thing = target{attribute}
data = torch.load(io.BytesIO(zlib.decompress(base64.b64decode(DATA))), weights_only=False)


def seeded(seed):
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)


seeded(data["built"])
made = thing(*data["init"][0], **data["init"][1]) if isinstance(thing, type) else thing
if isinstance(made, torch.nn.Module):
    made = made.to(getattr(torch, data["dtype"])) if data["dtype"] else made
    held = {{**dict(made.named_parameters()), **dict(made.named_buffers())}}
    with torch.no_grad():
        for name, value in data["weights"].items():
            held[name].copy_(value)
    if data["mode"] != "given":
        made.train(data["mode"] == "train")
arguments, named = data["inputs"]
seeded(data["seed"])
{verdict}
'''

_NUMBERS = """\
torch.set_grad_enabled(False)
result = made(*arguments, **named)
parts = {{torch.utils._pytree.keystr(path): x for path, x in torch.utils._pytree.tree_flatten_with_path(result)[0]}}
observed = torch.as_tensor(parts[{place!r}]).detach().cpu()
observed = torch.view_as_real(observed.to(torch.complex128)) if observed.is_complex() else observed.double()
wrong = 0
# index, what the reference gives, and by how much rounding may move that
for index, expected, bound in {worst!r}:
    found = float(observed[index])
    wrong += not (abs(found - expected) <= bound)
    print(f"{{index}}: {{found!r}}, expected {{expected!r}} within {{bound!r}}")
raise SystemExit(1 if wrong else 0)"""

_RAISES = """\
torch.set_grad_enabled({gradient})
try:
    made(*arguments, **named)
except BaseException as error:
    print(f"{{type(error).__name__}}: {{error}}")
    raise SystemExit(1) from error
raise SystemExit(0)"""

_CHANGED = """\
leaves = [x for x in torch.utils._pytree.tree_leaves((arguments, named)) if isinstance(x, torch.Tensor)]
before = [x.clone() for x in leaves]
with torch.no_grad():
    made(*arguments, **named)
changed = [i for i, (x, y) in enumerate(zip(leaves, before)) if not torch.equal(x.nan_to_num(), y.nan_to_num())]
print("tensors that the call has changed:", changed)
raise SystemExit(1 if changed else 0)"""

_ALIAS = """\
leaves = [x for x in torch.utils._pytree.tree_leaves((arguments, named)) if isinstance(x, torch.Tensor)]
with torch.no_grad():
    result = made(*arguments, **named)
given = {{x.untyped_storage().data_ptr() for x in leaves}}
parts = [x for x in torch.utils._pytree.tree_leaves(result) if isinstance(x, torch.Tensor)]
shared = [i for i, x in enumerate(parts) if x.untyped_storage().data_ptr() in given]
print("results in the memory of an argument:", shared)
raise SystemExit(1 if shared else 0)"""

_OVERWRITTEN = """\
with torch.no_grad():
    first = [x for x in torch.utils._pytree.tree_leaves(made(*arguments, **named)) if isinstance(x, torch.Tensor)]
    kept = [x.clone() for x in first]
    half = torch.utils._pytree.tree_map(
        lambda x: x * 0.5 if isinstance(x, torch.Tensor) and x.is_floating_point() else x, (arguments, named))
    made(*half[0], **half[1])
changed = [i for i, (x, y) in enumerate(zip(first, kept)) if not torch.equal(x.nan_to_num(), y.nan_to_num())]
print("results of the first call that the second has changed:", changed)
raise SystemExit(1 if changed else 0)"""


def script(found: Observed, cause: Cause, sentence: str) -> str:
    """The script of a finding: one that needs PyTorch alone where that is possible, else one that compares anew."""
    title = sentence.replace('"""', "'''").replace("\\", "/")
    for one in cause.calls:
        verdict = _verdict(cause, one)
        text = verdict and _alone(found, one, title, verdict)
        if text:
            return text
    return _ANEW.format(
        title=title,
        reference=_place(found.reference),
        candidate=_place(found.candidate),
        inputs=found.inputs and _place(found.inputs),
        device=found.device,
        slug=cause.slug,
    )


def _place(word: str) -> str:
    """A word whose file is named in full."""
    file, colon, name = word.partition(":")
    return f"{Path(file).resolve()}{colon}{name}" if file.endswith(".py") else word


def _verdict(cause: Cause, one: Evidence) -> str:
    if one.history or (one.case.gradient and cause.slug != "raises"):
        return ""
    if cause.slug in ("values", "precision") and one.process != "second":
        numbers = [d for d in one.differs("values", "not finite") if d.worst and d.place.startswith("result")]
        if numbers:
            worst = [(index, want, bound) for index, _, want, bound in numbers[0].worst]
            return _NUMBERS.format(place=numbers[0].place.removeprefix("result"), worst=worst)
    plain = {"raises": _RAISES, "changed": _CHANGED, "alias": _ALIAS, "overwritten": _OVERWRITTEN}
    return plain[cause.slug].format(gradient=one.case.gradient) if cause.slug in plain else ""


def _alone(found: Observed, one: Evidence, title: str, verdict: str) -> str:
    name = one.name.partition(".")[0]
    if not (found.folder / f"{name}.pt").is_file():
        return ""
    prepared = Prepared.load(found.folder, name, "cpu")
    seen = next((seen for seen in found.seen if not seen["built"] or prepared.key in seen["pairs"]), None)
    if seen is None:
        return ""
    pairs = seen["pairs"].get(prepared.key) or {}
    file = found.folder / f"weights {prepared.key}.pt"
    used: dict[str, Any] = torch.load(file, weights_only=True)["used"] if file.is_file() and pairs else {}
    case = prepared.case
    data = {
        "inputs": prepared.inputs,
        "init": prepared.init if seen["built"] else ([], {}),
        "weights": {theirs: used[mine] for mine, theirs in pairs.items()},
        "dtype": case.dtype,
        "mode": case.mode,
        "seed": case.seed,
        "built": 0 if case.drawn else case.seed,
    }
    held = io.BytesIO()
    torch.save(data, held)
    text = base64.b64encode(zlib.compress(held.getvalue(), 9)).decode()
    if len(text) > _LARGEST:
        return ""
    made = _ALONE.format(title=title, loader=seen["loader"], attribute=seen["attribute"], verdict=verdict)
    return made.replace("b64decode(DATA)", f"b64decode(\n    {text!r}\n)")
