"""Result of a comparison, as an object and as results.json, each finding with a script that shows it.

The script loads the candidate, repeats the call, and ends with 1 while it still differs.
"""

from __future__ import annotations

import base64
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from veriformer.spec import suite
from veriformer.verify.comparison.causes import Cause, causes
from veriformer.verify.comparison.judgement import Evidence, Observed
from veriformer.verify.comparison.subject import Prepared
from veriformer.verify.engine import environment
from veriformer.verify.presentation.error import FindingsError
from veriformer.verify.presentation.ranked import by_weight
from veriformer.verify.results import Counterexample, Result, Results, Status, Verdict, write
from veriformer.verify.results.finding import Finding
from veriformer.verify.scripts.script import describe

BLIND = 0.5
"""A relative deviation: where only larger ones would be found in the given call, there is no verdict."""

_SHOWN = 64
"""Numbers of an argument that are written down."""


@dataclass
class Comparison:
    """Result of comparing two implementations.

    findings: every kind of difference, the gravest first. power: the relative deviation that would have been found in
    the given call, None where nothing was judged. why: why there is no verdict, where there is none.
    """

    reference: str
    candidate: str
    findings: list[Finding] = field(default_factory=list)
    power: float | None = None
    calls: int = 0
    cases: int = 0
    notes: list[str] = field(default_factory=list)
    why: str = ""
    seconds: float = 0.0
    rows: list[Result] = field(default_factory=list)
    started: str = ""
    device: str = "cpu"

    @property
    def verdict(self) -> Verdict:
        """``holds`` where they agree, ``violated`` where they differ, ``inconclusive`` where nothing can be said."""
        if self.grave:
            return Verdict.VIOLATED
        return Verdict.INCONCLUSIVE if self.why else Verdict.HOLDS

    @property
    def grave(self) -> list[Finding]:
        """The findings that the verdict rests on: all but advice."""
        return [one for one in self.findings if not one.weight.advice]

    @property
    def exit_status(self) -> int:
        """0 they agree, 1 they differ, 3 there is no verdict."""
        return {Verdict.HOLDS: 0, Verdict.VIOLATED: 1}.get(self.verdict, 3)

    def raise_for_findings(self) -> None:
        """Return where they agree; else raise FindingsError with what the terminal shows."""
        if self.verdict != Verdict.HOLDS:
            from veriformer.verify.comparison.terminal import as_text

            raise FindingsError(as_text(self), self.grave)

    def results(self) -> Results:
        """Return the comparison as results.json: one row for each kind of difference, in each dtype."""
        return Results(
            suite=suite.record(),
            implementation={
                "target": self.candidate,
                "name": self.candidate,
                "version": None,
                "claims": {"reference": self.reference},
            },
            environment=environment.environment(self.device),
            profile="compare",
            seed="0",
            started=self.started,
            duration_s=round(self.seconds, 3),
            planned=len(self.rows),
            findings=self.findings,
            results=self.rows,
        )

    def write(self, path: Path) -> None:
        """Write results.json."""
        write(self.results(), path)


def conclude(found: Observed) -> Comparison:
    """Conclude the comparison from what was observed."""
    known = causes(found)
    told = [_finding(found, cause) for cause in known]
    first = next((one for one in found.of("first") if one.name in ("given", "weights", "small")), None)
    power = first.judged.power if first is not None else None
    why = found.why or _why(found, power)
    notes = [seen["note"] for seen in found.seen if seen.get("note")]
    if found.prepared.get("random"):
        notes.append("draws random numbers as it is given: compared by their distribution, and in evaluation mode")
    if found.untried:
        notes.append(f"not tried for want of time: {', '.join(found.untried[:6])}")
    findings = by_weight(told)
    return Comparison(
        found.reference,
        found.candidate,
        findings,
        power,
        calls=len(found.evidence),
        cases=len(found.references),
        notes=list(dict.fromkeys(notes)),
        why=why,
        seconds=found.seconds,
        rows=list(_rows(found, findings)),
        started=found.started,
        device=found.device,
    )


def _why(found: Observed, power: float | None) -> str:
    if not found.evidence:
        return "no call was judged"
    if power is not None and power > BLIND:
        return f"rounding alone moves the reference's result so far that only deviations above {power:.1g} would show"
    return ""


def _finding(found: Observed, cause: Cause) -> Finding:
    sentence = f"{cause.what}{f' ({cause.when})' if cause.when else ''}"
    kinds = dict.fromkeys(_dtype(one) for one in cause.calls)
    return Finding(
        id=cause.slug,
        weight=cause.weight,
        operation=_name(found),
        what=cause.what,
        when=cause.when,
        dtypes=tuple(kinds),
        requirements=(f"compare.{cause.slug}",),
        counterexample=_counterexample(found, cause, sentence),
        confirmed=cause.confirmed,
    )


def _name(found: Observed) -> str:
    return str(found.prepared.get("name", found.reference))


def _counterexample(found: Observed, cause: Cause, sentence: str) -> dict[str, Any]:
    one = cause.calls[0] if cause.calls else None
    arguments: dict[str, Any] = {}
    scalars = None
    if one is not None:
        from veriformer.verify.comparison.calling import leaves_of
        from veriformer.verify.comparison.subject import Prepared

        prepared = Prepared.load(found.folder, one.name.partition(".")[0], "cpu")
        tensors = leaves_of(prepared.inputs)
        scalars = sum(x.numel() for x in tensors.values())
        for name, x in tensors.items():
            small = x.numel() <= _SHOWN
            arguments[name] = describe(x) if small else f"{str(x.dtype).removeprefix('torch.')} {list(x.shape)}"
    worst = cause.difference.worst if cause.difference is not None else ()
    columns: Sequence[Any] = list(zip(*[item[1:] for item in worst], strict=True)) or (None, None, None)
    observed, exact, bound = (None if column is None else list(column) for column in columns)
    return vars(
        Counterexample(
            arguments=arguments,
            observed=observed,
            exact=exact,
            bound=bound,
            script=script(found, cause, sentence),
            scalars=scalars,
        )
    )


_ASPECTS = {
    "values": ("values", "not finite", "shape", "dtype", "parts", "type", "raises"),
    "gradients": ("gradient", "no gradient"),
    "state": ("state",),
    "purity": ("changed", "alias", "late", "overwritten"),
}


def _dtype(one: Evidence) -> str:
    if one.case.dtype:
        return {"bfloat16": "bf16", "float16": "fp16", "float64": "fp64", "float32": "fp32"}[one.case.dtype]
    return "given"


def _rows(found: Observed, findings: list[Finding]) -> list[Result]:
    rows = []
    for dtype in dict.fromkeys(_dtype(one) for one in found.evidence):
        calls = [one for one in found.evidence if _dtype(one) == dtype and one.process != "alone"]
        for aspect, kinds in _ASPECTS.items():
            asked = [one for one in calls if one.case.gradient or aspect != "gradients"]
            if not asked:
                continue
            off = [one for one in asked if one.differs(*kinds)]
            grave = any(not finding.weight.advice for finding in findings)
            ratio = max(one.judged.worst for one in asked)
            rows.append(
                Result(
                    requirement=f"compare.{aspect}",
                    operation=_name(found),
                    equations=[],
                    dtype=dtype,
                    device=found.device,
                    status=Status.PASS if not off else Status.FAIL if grave else Status.ADVICE,
                    examples=len(asked),
                    worst_ratio=ratio if aspect == "values" else None,
                )
            )
    return rows


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
    """Return the script of a finding: with PyTorch alone where possible, else a new comparison."""
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
    """Return the word with its file's absolute path."""
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
