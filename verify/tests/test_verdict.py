"""Verdicts of runs: advice violates nothing unless asked for strictly, and runs that show nothing have no verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from tests import made_results
from tests.made_results import finding
from tests.test_engine import verify
from veriformer.spec.requirement import Weight
from veriformer.verify import Result, Results, check
from veriformer.verify.engine.run import store_findings
from veriformer.verify.engine.runner import as_advice
from veriformer.verify.findings.assembly import no_graver
from veriformer.verify.results import Status, Verdict, read, validate, write
from veriformer.verify.results.domain import Domain
from veriformer.verify.results.finding import Finding
from veriformer.verify.results.verdict import VIOLATIONS

pytestmark = pytest.mark.usefixtures("warm")


def row(requirement: str, status: Status, weight: Weight = Weight.WRONG, dtype: str = "fp32") -> Result:
    return made_results.row(requirement, status, weight=weight.value, dtype=dtype, kind=None)


def run(*rows: Result, **fields: object) -> Results:
    return made_results.results(list(rows), **fields)


def softmax(z: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """As anybody writes it."""
    e = torch.exp(z - z.max(dim, keepdim=True).values)
    return e / e.sum(dim, keepdim=True)


def accepting(z: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """PyTorch's, which normalises over nothing."""
    return torch.softmax(z, dim)


def refused_otherwise(z: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """Refuses everything that is bad, with an exception of its own."""
    try:
        assert isinstance(z, torch.Tensor)
        assert not isinstance(dim, bool)
        return softmax(z, dim)
    except Exception as error:
        raise RuntimeError("no") from error


@pytest.mark.parametrize("status", list(Status))
@pytest.mark.parametrize("weight", list(Weight))
def test_what_is_not_met_is_advice_where_little_is_at_stake(status: Status, weight: Weight) -> None:
    found = as_advice(row("softmax.refusal", status, weight)).status
    lesser = weight in (Weight.WEAKNESS, Weight.IMPRECISE, Weight.UNGUARDED) and status in (Status.FAIL, Status.TIMEOUT)
    assert found is (Status.ADVICE if lesser else status)


def test_an_exception_of_code_that_was_recognised_is_advice() -> None:
    refused, wrong = (
        replace(row("softmax.equation", Status.FAIL, Weight.WRONG), message=message)
        for message in ("raised RuntimeError: sizes", "result[0]: observed 1, exact 2")
    )
    assert as_advice(refused).status is Status.FAIL
    assert as_advice(refused, recognised=True).status is Status.ADVICE
    assert as_advice(wrong, recognised=True).status is Status.FAIL
    advised = as_advice(refused, recognised=True)
    assert no_graver(Weight.WRONG, [advised]) is Weight.UNGUARDED
    assert no_graver(Weight.WRONG, [advised, wrong]) is Weight.WRONG


@pytest.mark.whole
def test_advice_violates_and_blocks_nothing_unless_strict() -> None:
    mine = SimpleNamespace(softmax=accepting)
    only = ["softmax.equation", "softmax.refusal", "softmax.refusal_names_argument"]
    found = {strict: check(mine, only=only, dtype=["fp32"], strict=strict) for strict in (False, True)}
    kept = {strict: [row.status.value for row in found[strict].results] for strict in found}
    assert kept == {False: ["pass", "pass", "advice", "advice"], True: ["pass", "pass", "fail", "blocked"]}
    assert (found[False].verdict, found[False].exit_status) == (Verdict.HOLDS, 0)
    assert (found[True].verdict, found[True].exit_status) == (Verdict.VIOLATED, 1)
    assert {r.requirement for r in found[False].advice} == {"softmax.refusal", "softmax.refusal_names_argument"}


def test_what_refuses_with_another_exception_has_refused() -> None:
    mine = SimpleNamespace(softmax=refused_otherwise)
    found = check(mine, only=["softmax.refusal", "softmax.refusal_names_argument"], dtype=["fp32"], strict=True)
    kept = {row.requirement: row.status for row in found.results}
    assert kept["softmax.refusal"] is Status.PASS
    assert kept["softmax.refusal_names_argument"] is Status.FAIL


def test_a_timeout_and_a_dead_process_are_violations_of_graver_requirements() -> None:
    for status in VIOLATIONS:
        assert run(row("softmax.equation", status)).verdict is Verdict.VIOLATED
    assert run(row("softmax.equation", Status.HARNESS_ERROR)).verdict is Verdict.INVALID
    assert run(row("softmax.equation", Status.FAIL), planned=2).verdict is Verdict.INVALID


def test_what_shows_nothing_is_inconclusive() -> None:
    vacuous = [row("softmax.equation", Status.VACUOUS, dtype=name) for name in ("fp32", "fp64")]
    found = run(row("softmax.contract", Status.PASS), *vacuous)
    assert (found.verdict, found.exit_status) == (Verdict.INCONCLUSIVE, 3)
    assert found.gaps == ["softmax.equation not exercised in any dtype"]
    assert run(*vacuous, row("softmax.equation", Status.PASS, dtype="fp16")).verdict is Verdict.HOLDS
    blind = [row("causal_lm.right_padding", Status.VACUOUS), row("causal_lm.mask_of_ones", Status.VACUOUS)]
    found = run(row("causal_lm.contract", Status.PASS), *blind)
    assert (found.exit_status, found.gaps) == (3, ["causal_lm.right_padding not exercised in any dtype"])
    seen = row("causal_lm.right_padding", Status.PASS, dtype="fp64")
    assert run(row("causal_lm.contract", Status.PASS), *blind, seen).verdict is Verdict.HOLDS
    nothing = run(row("softmax.contract", Status.NOT_PROVIDED), row("gelu.equation", Status.NOT_PROVIDED))
    assert (nothing.verdict, nothing.gaps) == (Verdict.INCONCLUSIVE, ["nothing is provided of softmax, gelu"])
    assert run(row("softmax.causality", Status.NOT_APPLICABLE)).verdict is Verdict.INCONCLUSIVE
    assert run(row("causal_lm.contract", Status.PASS), row("causal_lm.reach", Status.VACUOUS)).verdict is Verdict.HOLDS


def test_where_all_that_was_tried_came_to_advice_nothing_holds() -> None:
    raised = [row("lr_scheduler.contract", Status.ADVICE), row("lr_scheduler.resume", Status.ADVICE)]
    found = run(*raised, row("lr_scheduler.closed_form", Status.NOT_APPLICABLE))
    assert (found.exit_status, found.gaps) == (3, ["lr_scheduler.contract was seen to hold in no dtype"])
    assert run(*raised, row("lr_scheduler.groups", Status.PASS)).exit_status == 3, "its form is still not seen to hold"
    assert run(*raised, row("lr_scheduler.contract", Status.PASS, dtype="fp64")).verdict is Verdict.HOLDS
    assert run(row("softmax.refusal", Status.ADVICE)).verdict is Verdict.HOLDS  # asked for alone


def test_an_operation_holds_where_its_equation_was_right_and_nowhere_else() -> None:
    formats = ("fp64", "fp32", "bf16", "fp16")
    refused = [row("attention.refusal", Status.PASS, Weight.UNGUARDED, name) for name in formats]
    raised = [row("attention.equation", Status.ADVICE, dtype=name) for name in formats[1:]]
    found = run(*refused, *raised, row("attention.equation", Status.PASS, dtype="fp64"))
    assert (found.exit_status, found.held) == (0, {"attention": ["fp64"]})
    found = run(*refused, *raised, row("gelu.equation", Status.PASS))
    assert (found.exit_status, found.held) == (3, {"gelu": ["fp32"]})
    assert found.gaps == ["attention.equation was seen to hold in no dtype"]
    for one, status in (
        (finding(weight=Weight.WEAKNESS, when="with an infinite mask"), 0),
        (finding(weight=Weight.WEAKNESS, when=None), 3),
        (finding(weight=Weight.WEAKNESS, confirmed=False), 3),
        (finding(weight=Weight.IMPRECISE), 3),
    ):
        found = run(*(replace(one_row, finding=one.id) for one_row in raised), findings=[one])
        assert found.exit_status == status, "a weakness of calls of one kind leaves all others"
        assert found.held == ({"attention": [*formats[1:]]} if status == 0 else {})
    waived = run(row("attention.equation", Status.KNOWN_FAIL))
    assert (waived.exit_status, waived.held) == (0, {})


@pytest.mark.parametrize("least", [Weight.FRAGILE, Weight.WEAKNESS, Weight.IMPRECISE, Weight.UNGUARDED])
def test_findings_from_the_weight_on_that_is_asked_for_violate(least: Weight) -> None:
    order = list(Weight)
    for weight in Weight:
        found = run(
            row("softmax.equation", Status.PASS),
            findings=[Finding(id="a", weight=weight, operation="softmax", what="…")],
            fail_on=least,
        )
        assert found.exit_status == (1 if order.index(weight) <= order.index(least) else 0)
        assert as_advice(row("softmax.law", Status.FAIL, weight), fail_on=least).status is (
            Status.FAIL if order.index(weight) <= order.index(least) else Status.ADVICE
        )


def test_a_row_that_a_weakness_explains_is_advice_unless_weaknesses_violate() -> None:
    failed = row("softmax.range", Status.FAIL, Weight.FRAGILE)
    weak = Finding(id="a", weight=Weight.WEAKNESS, operation="softmax", what="…", rows=(failed.key,))
    for least, status in ((Weight.FRAGILE, Status.ADVICE), (Weight.WEAKNESS, Status.FAIL)):
        found = run(row("softmax.equation", Status.PASS), failed, fail_on=least)
        store_findings(found, {"softmax": [weak]})
        assert [one.status for one in found.results] == [Status.PASS, status]
        assert found.exit_status == (0 if status is Status.ADVICE else 1)


def test_a_mask_a_cache_or_a_branch_that_was_not_seen_leaves_no_verdict_unless_accepted() -> None:
    held = row("softmax.equation", Status.PASS)
    lines = ("mine.py", 14, 18)
    for domain, said in (
        (Domain(unread=("key_padding_mask",)), ["`key_padding_mask` was left out"]),
        (Domain(never_varied=("past_kv", "eps", "num_kv_heads")), ["`past_kv` was never varied"]),
        (Domain(never_run=(lines, ("mine.py", 3, 3)), untaken=(lines,)), ["lines 14 to 18 never ran"]),
        (Domain(unread=("temperature",), never_run=(lines,), never_varied=("pad_token_id",)), []),
        (Domain(never_varied=("eps", "norm_topk"), flags=("norm_topk",)), ["`norm_topk` was never varied"]),
        (Domain(refused={f"rank {n}": f"IndexError: no {n}" for n in range(8)}), []),
        (Domain(refused={f"rank {n}": f"ValueError: no {n}" for n in range(9)}), []),
        (
            Domain(refused={f"rank {n}": f"IndexError: no {n}" for n in range(9)}),
            ["why some calls raise IndexError (no 0) was not found"],
        ),
    ):
        found = run(held, domain={"softmax": domain})
        assert (found.exit_status, found.gaps, found.unseen) == (3 if said else 0, said, said)
        assert run(held, domain={"softmax": domain}, partial=True).exit_status == 0
    assert run(row("softmax.equation", Status.FAIL), domain={"softmax": Domain(unread=("mask",))}).exit_status == 1


def test_findings_domain_and_global_state_weigh_in() -> None:
    held = row("softmax.equation", Status.PASS)
    grave, slight = (Finding(id=w, weight=w, operation="softmax", what="…") for w in (Weight.LEAK, Weight.IMPRECISE))
    narrow = {"softmax": Domain(refused={"fp16": "RuntimeError"})}
    assert run(held, findings=[grave]).verdict is Verdict.VIOLATED
    assert run(held, findings=[slight], domain=narrow).verdict is Verdict.HOLDS
    assert run(held, findings=[slight], strict=True).verdict is Verdict.VIOLATED
    assert run(held, domain=narrow, strict=True).verdict is Verdict.VIOLATED
    assert run(held, global_state={"softmax": ["the default dtype"]}).verdict is Verdict.VIOLATED


CONSTANTS = {"eps": 1e-5, "approximate": "tanh", "betas": [0.9, 0.95]}


def test_a_document_holds_all_of_it_and_reads_back(tmp_path: Path) -> None:
    found = check(SimpleNamespace(softmax=softmax), only=["softmax.equation", "softmax.refusal"], dtype=["fp32"])
    found.domain["softmax"] = Domain(provided=("dim",), refused={"rank 0": "IndexError"}, constants=CONSTANTS)
    found.findings.append(Finding(id="a", weight=Weight.FRAGILE, operation="softmax", what="…", dtypes=("fp16",)))
    found.global_state["softmax"] = ["the default dtype"]
    found.fail_on, found.partial = Weight.WEAKNESS, True
    found.domain["gelu"] = Domain(never_run=(("mine.py", 1, 2),), untaken=(("mine.py", 1, 2),), unread=("mask",))
    write(found, tmp_path / "results.json")
    document = json.loads((tmp_path / "results.json").read_text())
    assert (document["schema"], document["verdict"]) == ("veriformer/results/2", "violated")
    assert [r["weight"] for r in document["results"]] == ["wrong", "wrong", "unguarded"]
    assert all(r["finding"] is None for r in document["results"])
    assert read(tmp_path / "results.json") == found
    document["results"][0]["weight"] = "grave"
    with pytest.raises(ValueError, match="results/0/weight"):
        validate(document)


def test_a_file_of_version_1_is_refused_with_the_versions_that_read_it(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"schema": "veriformer/results/1", "results": []}')
    with pytest.raises(ValueError, match=r"results/1', which versions of veriformer before 0\.1\.0 wrote"):
        read(tmp_path / "old.json")


@pytest.mark.whole
def test_the_command_line_takes_strict(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import torch\ndef softmax(z, dim=-1):\n    return torch.softmax(z, dim)\n")
    words = [tmp_path / "mine.py", "--profile", "quick", "--only", "softmax.refusal", "--dtype", "fp32", "--jobs", 1]
    plain, strict = verify(*words), verify(*words, "--strict")
    assert (plain.returncode, strict.returncode) == (0, 1), plain.stderr + strict.stderr
    assert "unguarded softmax: bad input is accepted, or refused unhelpfully" in plain.stderr
    assert "HOLDS" in plain.stderr
