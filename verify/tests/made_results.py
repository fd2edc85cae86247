"""Results documents made by hand: what a run may come to, without running anything."""

from __future__ import annotations

from typing import Any

from veriformer.spec.requirement import Weight
from veriformer.verify.results import Counterexample, Result, Results, Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding

HOSTILE = (
    "\x1b[31mred\x07 \u202egnirts\u2066 \ud800 [bold]markup[/bold] [/] <script>alert(1)</script>\r\nnext `|` line " * 3
)

EXAMPLE = {
    "arguments": {
        "q": {"dtype": "float32", "shape": [1, 1, 2, 1], "values": [[[[1.0], [2.0]]]]},
        "k": {"dtype": "float32", "shape": [1, 1, 9, 3], "values": [[[[0.5] * 3] * 9]]},
        "mask": None,
        "scale": 0.0,
    },
    "observed": [[0.25, 0.7310585786]],
    "exact": [[0.25, 0.5]],
    "bound": [[1e-7, 5.96e-08]],
    "script": "import torch\nraise SystemExit('violated')\n",
}


def row(requirement: str = "attention.equation", status: Status = Status.PASS, **fields: Any) -> Result:
    """Make a row."""
    given: dict[str, Any] = {"equations": ["20"], "dtype": "fp32", "device": "cpu", "examples": 20, "kind": "equation"}
    return Result(
        requirement=requirement, operation=requirement.partition(".")[0], status=status, **{**given, **fields}
    )


def failing(requirement: str = "attention.scale", **fields: Any) -> Result:
    """A row that fails, with its counterexample."""
    example = Counterexample(**EXAMPLE)
    words = {"message": "result[0, 1]: observed 0.73, exact 0.5", "bug_class": "option ignored", "worst_ratio": 9.0}
    return row(requirement, Status.FAIL, **{**words, "counterexample": example, **fields})


def finding(identifier: str = "f1", weight: Weight = Weight.WRONG, **fields: Any) -> Finding:
    """Make a finding."""
    given: dict[str, Any] = {
        "operation": "attention",
        "what": "a scale of 0 is taken as not given",
        "when": "scale = 0",
        "dtypes": ("fp64", "fp32"),
        "requirements": ("attention.scale", "attention.equation"),
        "rows": ("attention.scale[fp32-cpu]",),
        "counterexample": EXAMPLE,
        "precedents": ("https://github.com/x/y/pull/1",),
        "confirmed": True,
    }
    return Finding(id=identifier, weight=weight, **{**given, **fields})


def results(rows: list[Result] | None = None, target: str = "mine.py", **fields: Any) -> Results:
    """Make the results of a run."""
    rows = [row()] if rows is None else rows
    given: dict[str, Any] = {
        "suite": {"version": "0.1.0", "commit": None},
        "implementation": {"target": target, "name": "mine", "version": None, "claims": {}},
        "environment": {
            "python": "3.13",
            "torch": "2.13",
            "platform": "Linux",
            "cpu": None,
            "device": "cpu",
            "driver": None,
            "flags": {},
        },
        "profile": "quick",
        "seed": "slug",
        "started": "2025-01-01T00:00:00+00:00",
        "duration_s": 1.5,
        "planned": len(rows),
        "results": rows,
    }
    return Results(**{**given, **fields})


def several() -> Results:
    """A run with findings of every weight, a domain narrower than the contract, and rows of every kind."""
    rows = [
        row(),
        row("attention.gradient", kind="gradient"),
        row("softmax.equation", dtype="fp64"),
        failing(),
        row("attention.refusals", Status.ADVICE, weight="unguarded"),
        row("gelu.equation", Status.NOT_PROVIDED, message="the implementation has no callable 'gelu'"),
    ]
    found = [
        finding("imprecise", Weight.IMPRECISE, operation="rms_norm", what="computed in float32", when="float64 input"),
        finding(
            "fragile",
            Weight.FRAGILE,
            operation="softmax",
            what="overflows",
            when="a row of −inf",
            rows=("softmax.range[fp32-cpu]",),
            counterexample=EXAMPLE | {"exact": None, "bound": None, "observed": "nan"},
            message="result is not finite",
            confirmed=False,
        ),
        finding("leak", Weight.LEAK, what="NaN in a hidden value reaches the result", when=None, precedents=()),
        finding(),
        finding(
            "more",
            what="the causal mask is one late",
            suggestion={"convention": "causal.alignment", "value": "top-left"},
        ),
    ]
    domain = {
        "attention": Domain(
            provided=("masks", "causal"),
            refused={
                "grouped heads": "RuntimeError: The size of tensor a (3) must match",
                "d_v ≠ d_k": "ValueError: no",
            },
            rules=("n a multiple of 16",),
        ),
        "rms_norm": Domain(provided=("weight",), constants={"eps": 1e-05}, precision={"fp64": "fp32"}),
    }
    return results(rows, findings=found, domain=domain)
