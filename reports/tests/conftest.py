"""Documents of every kind that a report reads, small and with every status in them."""

import json

import pytest

from tests import made_results
from veriformer.spec.requirement import Weight
from veriformer.verify.results import Counterexample, Results, Status, write
from veriformer.verify.results.finding import Finding

HOSTILE = '<script>alert("x")</script><img src=http://evil.example/x onerror=alert(1)>\'"&|`${{7*7}}'


def make_row(requirement="softmax.equation", dtype="fp32", status=Status.PASS, **fields):
    measured = {"equations": ["1"], "worst_ratio": 0.25, "vacuous_share": 0.0, "seconds": 0.01}
    return made_results.row(requirement, status, **{"dtype": dtype, "kind": None, **measured, **fields})


def make_run(rows=None, target="mine.py", **fields):
    return made_results.results([make_row()] if rows is None else rows, target, **fields)


def make_violation(requirement="softmax.shift", dtype="fp32", status=Status.FAIL, **fields):
    example = Counterexample(
        arguments={"z": {"dtype": "float32", "shape": [2], "values": [1.5, 2.5]}, "dim": -1, "mask": None},
        observed=[0.5, 0.25],
        exact=[0.5000001, 0.75],
        bound=[1e-6, 1e-6],
        script="import torch\nraise SystemExit('violated')\n",
    )
    words = {"message": "result[1]: observed 0.25, exact 0.75", "bug_class": "not invariant to shifts"}
    defaults = {"worst_ratio": 500000.0, "counterexample": example}
    return make_row(requirement, dtype, status, **{**words, **defaults, **fields})


def every_status():
    """Return a row of every status."""
    special = {Status.BLOCKED: {"blocked_by": "softmax.equation"}, Status.HARNESS_ERROR: {"message": "Trace\n  back"}}
    rows = []
    for number, status in enumerate(Status):
        make = make_violation if status is Status.FAIL else make_row
        rows.append(make(f"softmax.law{number}", status=status, **special.get(status, {})))
    return rows


MUTANTS = {
    "schema": "veriformer/mutants/1",
    "profile": {"name": "quick", "examples": 20},
    "seed": "slug",
    "summary": {
        "mutants": 2,
        "killed": 1,
        "survivors": ["SM-99"],
        "variants": 1,
        "false_alarms": 1,
        "sabotages": 1,
        "escapes": 1,
        "kills_by_requirement": {"softmax.shift": 1},
        "kills_by_kind": {"law": 1},
    },
    "mutants": [
        {
            "id": "SM-02",
            "title": "No maximum is subtracted",
            "link": "https://github.com/x/y/pull/1",
            "area": "softmax",
            "operations": ["softmax"],
            "killed": True,
            "first_killer": {"requirement": "softmax.shift", "dtype": "fp32", "examples": 3},
        },
        {
            "id": "SM-99",
            "title": "One that nothing kills",
            "link": "javascript:alert(1)",
            "area": "softmax",
            "operations": ["softmax"],
            "killed": False,
            "first_killer": None,
        },
    ],
    "variants": [{"id": "exp2", "title": "Through powers of two", "operations": ["softmax"], "link": None}],
    "sabotages": [{"id": "zeros", "title": "Zeros", "exempt": {}}],
    "not_expressible": [
        {"id": "SM-77", "title": "A race", "link": "https://a.b/c", "area": "softmax", "reason": "needs two processes"}
    ],
    "cells": [],
}


def make_cell(member, requirement="softmax.shift", family="mutant", dtype="fp32", status="pass", examples=20):
    return {
        "family": family,
        "member": member,
        "requirement": requirement,
        "operation": requirement.partition(".")[0],
        "kind": "law",
        "dtype": dtype,
        "status": status,
        "killed": status == "fail",
        "examples": examples,
        "seconds": 0.1,
    }


MUTANTS["cells"] = [
    make_cell("SM-02", "softmax.equation"),
    make_cell("SM-02", "softmax.shift", status="fail", examples=3),
    make_cell("SM-99", "softmax.equation"),
    make_cell("SM-99", "softmax.equation", dtype="bf16"),
    make_cell("exp2", "softmax.shift", family="variant", status="fail"),
    make_cell("zeros", "softmax.shift", family="sabotage"),
]

SPEC = {
    "schema": "veriformer/spec/1",
    "equations": [
        {
            "slug": "softmax",
            "number": "1",
            "title": "Softmax",
            "statement": r"\text{softmax}(z)_i = \frac{e^{z_i}}{\sum_j e^{z_j}}",
            "sources": [{"document": "002", "section": "2.2.4", "line": 392}],
            "symbols": [{"name": "z", "space": r"\mathbb{R}^n", "meaning": "scores", "assumptions": "finite"}],
            "assumptions": ["there is at least one score"],
            "steps": [
                {
                    "slug": "sum",
                    "claim": r"They sum to one: $\sum_i p_i = 1$.",
                    "scope": "proved for all n",
                    "scope_detail": "",
                    "status": "proved",
                    "seconds": 0.1,
                    "detail": "1 identity",
                },
                {
                    "slug": "false",
                    "claim": "A step that does not hold",
                    "scope": "confirmed numerically",
                    "scope_detail": "n ≤ 4",
                    "status": "refuted",
                    "seconds": 0.1,
                    "detail": "identity 1: x = 2",
                },
                {
                    "slug": "printed",
                    "claim": "The printed numbers are right",
                    "scope": "confirmed numerically",
                    "scope_detail": "these digits",
                    "status": "confirmed",
                    "seconds": 0.1,
                    "detail": "2 identities",
                },
            ],
            "errata": [
                {
                    "slug": "sign",
                    "kind": "wrong",
                    "source": {"document": "002", "section": "2", "line": 7},
                    "printed": r"\text{the sum is } -1",
                    "corrected": "1",
                    "evidence": "z = 0: the statement gives -1, the truth is 1",
                    "refutes": True,
                }
            ],
            "costs": {"FLOPs": "0", "bytes": "2 N d w"},
        }
    ],
    "inventory": [
        {"id": "002:398.1", "verdict": "proved", "scope": "proved for all n"},
        {"id": "002:399.1", "verdict": "proved", "scope": "proved for all n"},
        {"id": "002:392.1", "verdict": "defined", "scope": None},
    ],
}

COUNT = {
    "target": "mine",
    "operation": "attention",
    "case": "all lengths",
    "passes": "forward",
    "quantity": "FLOPs",
    "grid": {"n": {"nodes": [1, 2], "beyond": 3}},
    "fixed": {"G": 2, "n_q": "n"},
    "points": 3,
    "measured": {"text": "2*n**2", "latex": "2 n^{2}"},
    "claim": {"kind": "equal", "text": "3*n", "latex": "3 n", "degree": None},
    "verdict": "refuted",
    "reason": None,
    "witness": {"point": {"n": 2}, "counted": 8, "claimed": 6},
    "seconds": 0.25,
}
UNCOUNTED = COUNT | {
    "measured": None,
    "verdict": "not countable",
    "reason": "a fused kernel",
    "witness": None,
    "points": 0,
}
GROWTH = COUNT | {
    "quantity": "peak extra bytes",
    "claim": {"kind": "growth", "text": "n**2", "latex": "n^{2}", "degree": 2},
    "verdict": "confirmed",
    "witness": None,
}
BENCHMARKS = {
    "schema": "veriformer/benchmarks/1",
    "suite": {"version": "0.1.0", "commit": None},
    "environment": {"python": "3.13", "torch": "2.13.0", "platform": "Linux"},
    "started": "2025-01-01T00:00:00+00:00",
    "duration_s": 1.5,
    "counts": [COUNT, UNCOUNTED, GROWTH],
}


@pytest.fixture
def row():
    """Makes a row that passes, but for what is asked otherwise."""
    return make_row


@pytest.fixture
def violation():
    """Makes a row that fails with a counterexample."""
    return make_violation


@pytest.fixture
def run():
    """Makes a run of given rows."""
    return make_run


@pytest.fixture
def all_statuses():
    """Return a row of every status."""
    return every_status()


@pytest.fixture
def hostile():
    """Text that would do harm on a page that did not escape it."""
    return HOSTILE


@pytest.fixture
def documents():
    """The mutants, the specification and the benchmarks as they are read from disk."""
    return {"mutants": MUTANTS, "spec": SPEC, "benchmarks": BENCHMARKS}


@pytest.fixture
def finding():
    """Makes a finding."""

    def make(identifier="a", weight="wrong", **fields):
        named = {"operation": "softmax", "what": f"fault {identifier}"}
        return Finding(id=identifier, weight=Weight(weight), **{**named, **fields})

    return make


@pytest.fixture
def save(tmp_path):
    """Writes a run or a document into a file and gives its path."""

    def save(name, content):
        path = tmp_path / name
        if isinstance(content, Results):
            write(content, path)
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return save
