"""Verdicts on code as people write it: rows that hold for right code, and what is found in its faults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from click.testing import CliRunner

from tests.edited_files import Edit, edited, written
from tests.faulty_forms import form_file
from tests.form_examples import loaded_form, text_file
from veriformer.spec.requirement import Weight
from veriformer.verify import bind, check
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.cli import verify
from veriformer.verify.contract.dtypes import NAMES
from veriformer.verify.domain import constants
from veriformer.verify.domain.probe import probe_operation
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import Profile
from veriformer.verify.findings import diagnosis
from veriformer.verify.findings.calls import Case
from veriformer.verify.findings.condition import Condition
from veriformer.verify.findings.witness import STEPWISE
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.judging.judge import Reference
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.operations.layers.rms_norm import RMS_NORM
from veriformer.verify.presentation.terminal import as_text
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.recognition.targets import target_of
from veriformer.verify.results import Results, Status
from veriformer.verify.results.domain import Domain
from veriformer.verify.scripts.script import Recorded
from veriformer.verify.targets.loading import wrap
from veriformer.verify.targets.source_files import module_of
from veriformer.verify.targets.target import Target

RESET = "kv_cache.history kv_cache.overflow"
GATES = "mixture_of_experts.gradient mixture_of_experts.identical_experts mixture_of_experts.unchosen"
PADDING = "multi_head_attention.padding"
EQUATION = "multi_head_attention.equation"
BYTE_PAIRS, TOGETHER = "bpe_train bpe_encode", "bpe_train, bpe_encode"
WRITING = "causal_lm.greedy causal_lm.crop causal_lm.sampled"


@dataclass(frozen=True)
class Verdict:
    """Verdict on what a file of `forms/` has by a name, in these rows and this dtype, in all where it is empty.

    found: by requirement the weight of what is found. Of no other operation is anything found; of this one more may be.
    edit: old and new text of the file, for a fault. passed: so many rows pass at least; one, where nothing is found.
    advised: operations, as a finding names them, to which something is advised besides.
    """

    file: str
    name: str
    rows: str
    dtype: str
    found: Mapping[str, str] = field(default_factory=dict)
    edit: tuple[str, str] | None = None
    profile: str = "quick"
    passed: int = 0
    advised: str = ""

    def judge(self) -> Results:
        """Return the results of the run."""
        module = loaded_form(self.file)
        if self.edit is not None:
            old, new = self.edit
            edits: list[Edit] = [{"old": old, "new": new}]
            module = module_of(written(f"{self.file}_{VERDICTS.index(self)}", form_file(self.file), edits))
        dtypes = [self.dtype] if self.dtype else NAMES
        return check(getattr(module, self.name), only=self.rows.split(), dtype=dtypes, profile=self.profile)


VERDICTS = [
    Verdict("caches_of_files", "KVCache", RESET, "fp32"),
    Verdict("caches_of_files", "HalfResetKVCache", RESET, "fp32", {"kv_cache.history": "wrong"}),
    Verdict("caches_of_files", "GrowingCache", RESET, "fp32"),
    Verdict("caches_of_files", "CountedOutsideCache", RESET, "fp32"),
    Verdict("caches_of_files", "PlacedCache", RESET, "fp32"),
    Verdict("experts_of_files", "SparseMoE", f"{GATES} mixture_of_experts.equation", "fp64"),
    Verdict("experts_of_files", "StackedMoE", f"{GATES} mixture_of_experts.permutation", "fp64"),
    Verdict("layers_with_own_tables", "TabledAttention", EQUATION, "fp64"),
    Verdict("layers_with_own_tables", "TiledTabledAttention", EQUATION, "fp64", {EQUATION: "wrong"}),
    Verdict("masks_of_tokens", "KeepAttention", PADDING, "fp32"),
    Verdict("masks_of_tokens", "LateAttention", PADDING, "fp32", {PADDING: "leak"}),
    Verdict("masks_of_tokens", "NoisyAttention", EQUATION, "fp32", {EQUATION: "wrong"}),
    Verdict("layers_of_files", "apply_rotary_emb", "rope.equation rope.gradient rope.batch", "fp32"),
    Verdict("models", "GPT", "causal_lm.prefix causal_lm.loss", "fp64", passed=2),
    Verdict("models_faulty", "GPT", "causal_lm.prefix", "fp64", {"causal_lm.prefix": "leak"}),
    Verdict("models_faulty_cache", "GPT", "causal_lm.loss", "fp64", {"causal_lm.loss": "wrong"}),
    Verdict(
        *("models_faulty_cache", "CachedTransformer", "causal_lm.cache_steps", "fp64"),
        {"causal_lm.cache_steps": "wrong"},
    ),
    Verdict("optimizers", "SGD", "gradient_descent.equation", "fp32"),
    Verdict(*("optimizers_faulty", "SGD", "gradient_descent.equation", "fp32"), {"gradient_descent.equation": "wrong"}),
    Verdict("optimizers", "adam_step", "adam.equation", "fp32"),
    Verdict("optimizers_faulty", "adam_step", "adam.equation", "fp32", {"adam.equation": "wrong"}),
    Verdict("byte_pairs", "BytePairTokenizer", BYTE_PAIRS, "", passed=6, advised=TOGETHER),
    Verdict("byte_pairs", "OfTexts", BYTE_PAIRS, "", passed=6, advised=TOGETHER),
    Verdict("byte_pairs", "FromTheLeft", BYTE_PAIRS, "", {"bpe_encode.equation": "wrong"}, passed=6, advised=TOGETHER),
    Verdict("byte_pairs", "Longest", BYTE_PAIRS, "", {"bpe_train.most_frequent": "wrong"}, passed=6, advised=TOGETHER),
    Verdict("byte_pairs", "OneShort", BYTE_PAIRS, "", {"bpe_train.equation": "wrong"}, passed=6, advised=TOGETHER),
    # Without the rows that these rest on.
    Verdict("models_that_write", "GPTModel", WRITING, "fp64", profile="default", passed=3),
    *(
        Verdict("models_that_write", "GPTModel", WRITING, "fp64", {f"causal_lm.{row}": "wrong"}, edit, "default")
        for row, edit in (
            ("greedy", ("[:, -context_size:]", "[:, -5:]")),
            ("greedy", ("following), 1)", "following.flip(0)), 1)")),
            ("sampled", ("logits / temperature", "logits * temperature")),
            ("sampled", ("logits < least", "logits <= least")),
            ("crop", ("-context_size:", "1 - context_size:")),
        )
    ),
]


@pytest.mark.whole
@pytest.mark.parametrize("verdict", VERDICTS, ids=lambda verdict: f"{verdict.name}-{'-'.join(verdict.found)}")
def test_code_is_judged_as_its_row_says(verdict: Verdict) -> None:
    results = verdict.judge()
    passed = [row.requirement for row in results.results if row.status is Status.PASS]
    assert len(passed) >= (verdict.passed or not verdict.found), as_text(results)
    found = {slug: one.weight.value for one in results.findings for slug in one.requirements}
    assert {slug: found.get(slug) for slug in verdict.found} == verdict.found, as_text(results)
    operations = {slug.partition(".")[0] for slug in verdict.found} | {verdict.advised} - {""}
    assert {one.operation for one in results.findings} == operations
    assert {row.operation for row in results.violations} <= {slug.partition(".")[0] for slug in verdict.found}


PROFILE = Profile(name="red", examples=14, shrinks=0, timeout_s=60)
ROWS = ("prefix", "cache_split", "cache_steps", "cache_branch")


def rows_of(file: str, name: str) -> dict[str, Status]:
    target = wrap(getattr(loaded_form(file), name))
    rows = [row for row in checks() if row.requirement.slug in [f"causal_lm.{name}" for name in ROWS]]
    found = {row.requirement.slug[10:]: run_check(CheckRun(row, "fp64"), target, PROFILE, "red", {}) for row in rows}
    return {name: row.status for name, row in found.items()}


@pytest.mark.whole
@pytest.mark.parametrize("name", ["Transformer", "StartingTransformer"])
def test_models_with_places_in_a_cache_hold(name: str) -> None:
    assert rows_of("models_placed", name) == dict.fromkeys(ROWS, Status.PASS)


@pytest.mark.whole
@pytest.mark.parametrize(("name", "wrong"), [("Transformer", "cache_steps"), ("StartingTransformer", "cache_split")])
def test_a_fault_of_a_cache_is_seen(name: str, wrong: str) -> None:
    assert rows_of("models_placed_faulty", name)[wrong] is Status.FAIL


def domain_of(name: str) -> Domain:
    """Return the domain of a norm of `forms/norms_of_files.py`."""
    kind = getattr(loaded_form("norms_of_files"), name)
    pins = {"recognised": [pin.to_dict() for pin in recognise(kind).pins]}
    return probe_operation(target_of(kind, name, "", pins), RMS_NORM, dtypes=("fp64",))


@pytest.mark.parametrize(("name", "eps"), [("BareRMSNorm", 0.0), ("ConfiguredRMSNorm", 1e-3), ("DeafRMSNorm", 1e-3)])
def test_what_code_declares_is_its_constant_and_what_it_does_not_is_measured(name: str, eps: float) -> None:
    assert domain_of(name).constants["eps"] == eps


@pytest.mark.whole
def test_a_number_that_is_no_epsilon_is_not_judged_by() -> None:
    refused = domain_of("WideRMSNorm").refused["fp64"]
    assert refused == "eps: 2 alone explains its results, which is no eps"


def test_a_number_that_another_one_explains_as_well_is_not_judged_by(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "all_fit", lambda samples, operation, judged_by, values: values["eps"] < 1e-4)
    constants._assert_identifiable(RMS_NORM, "eps", {"eps": 3e-3}, [], "fp32")
    with pytest.raises(constants.Unadmitted, match=r"3e-05 and 1\.5e-05 both explain"):
        constants._assert_identifiable(RMS_NORM, "eps", {"eps": 3e-5}, [], "fp32")


@cache
def found(name: str, only: str, *formats: str) -> Results:
    return check(getattr(loaded_form("layers_of_files"), name), only=only.split(), dtype=list(formats), profile="quick")


def test_nan_behind_a_mask_is_no_mask_that_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    row, target = cast(CheckRun, None), cast(Target, SimpleNamespace(implementation=None))
    call = Recorded("y", "multi_head_attention", (), {"attention_mask": torch.tensor([[False, True]])})
    right = {"result 0": Reference(np.array([1.0, 2.0]), np.array([0.1, 0.1]))}
    monkeypatch.setattr(diagnosis, "references", lambda *_: None)  # the spec has nothing for NaN that is not hidden
    for given, told in ((np.array([np.nan, 2.0]), None), (np.array([np.nan, 5.0]), "attention_mask is ignored")):
        case = Case(row, call, {"result 0": given}, right)
        monkeypatch.setattr(diagnosis, "outcome", lambda *_, given=given: {"result 0": given})
        found = diagnosis.ignored_option(Condition("multi_head_attention"), [case], [], target)
        assert (found and found.what) == told


@pytest.mark.whole
def test_what_linear_maps_hand_on_in_half_precision_is_no_fault_of_a_module() -> None:
    assert found("Mlp", "feed_forward.range", "fp16").findings == []
    mlp = bind("modules/feed_forward", loaded_form("layers_of_files").Mlp)
    rows = [torch.full((1, 1), value, dtype=torch.float16) for value in (249.0, 322.0, 1.0, 0.0625, 1.0)]
    x, w1, b1, w2, b2 = rows
    with pytest.raises(NotOffered, match="fc1: its result leaves the range of float16"):
        mlp(x, w1, b1[0], w2, b2[0])
    assert mlp(x, w2, b1[0], w2, b2[0]).isfinite().all()
    assert mlp(x * float("inf"), w1, b1[0], w2, b2[0]).isinf().all()  # what is infinite before is the caller's


@pytest.mark.whole
def test_a_row_of_whose_calls_none_is_offered_is_not_provided() -> None:
    row = found("Attention", "multi_head_attention.range", "fp16").results[-1]
    assert row.status is Status.NOT_PROVIDED, row.message
    assert "not offered: " in str(row.message)


@pytest.mark.whole
def test_what_pytorch_itself_loses_is_advice_and_told_so() -> None:
    (one,) = found("VocabEmbedding", "token_embedding.range", "fp16").findings
    assert one.weight is Weight.WEAKNESS
    assert one.witness == "torch.nn.functional.embedding"
    assert one.what.endswith(f", as {one.witness} does")


@pytest.mark.whole
def test_a_known_fault_that_only_halves_show_far_from_the_ordinary_is_a_weakness() -> None:
    (one,) = [one for one in found("RMSNorm", "rms_norm.range rms_norm.near_eps", "fp16").findings if one.rows]
    assert one.what == f"rms_norm: the mean square is formed in half precision, as {STEPWISE} does"
    assert one.weight is Weight.WEAKNESS


@pytest.mark.whole
def test_padding_before_the_text_and_causality_leave_a_query_nothing_which_is_no_leak() -> None:
    rows = "multi_head_attention.padding multi_head_attention.no_key"
    findings = found("MaskedAttention", rows, "fp32").findings
    assert {one.weight for one in findings} == {Weight.WEAKNESS}
    (padded,) = [one for one in findings if "multi_head_attention.padding" in one.requirements]
    assert padded.when == "with a query that sees no key"


@pytest.mark.whole
def test_a_known_fault_is_named_where_a_narrow_table_hides_it_in_double_precision() -> None:
    thing = loaded_form("ordered_otherwise").OwnColumnsPositionalEncoding
    results = check(thing, only=["sinusoidal_encoding.equation"], dtype=["fp64", "fp32"], profile="quick")
    (finding,) = [one for one in results.findings if not one.weight.advice]
    assert "the cosine's exponent is that of its own column" in finding.what


@pytest.mark.whole
def test_a_default_that_nothing_confirms_is_by_the_signature() -> None:
    def rms_norm(x: torch.Tensor, weight: torch.Tensor | None = None, *, eps: float = 1e-3) -> torch.Tensor:
        y = x / (x.square().sum(-1, keepdim=True) + eps).sqrt()
        return y if weight is None else y * weight

    found = check(SimpleNamespace(rms_norm=rms_norm), only=["rms_norm.equation"], dtype=["fp64"], profile="quick")
    domain = Domain.from_dict(found.to_dict()["domain"]["rms_norm"])
    assert (domain.constants, domain.how("eps")) == ({"eps": 1e-3}, "by the signature")
    assert "eps = 0.001, by the signature" in as_text(found)


@pytest.mark.whole
def test_a_problem_is_compared_and_its_solution_verified(tmp_path: Path) -> None:
    """The comparison is run as it is, on a solution that is wrong beyond 1."""
    file = tmp_path / "faulty_problem.py"
    fault = {"old": "x.clamp(min=0) ** 2", "new": "x.clamp(min=0) ** 2 * (x < 1)"}
    file.write_text(edited(form_file("kernel_problem"), [fault]), encoding="utf-8")
    found = CliRunner().invoke(
        verify, [str(file), "--jobs", "1", "--only", "silu.equation", "--dtype", "fp32", "--profile", "quick"]
    )
    assert found.exit_code == 1, found.output
    assert "ModelNew against Model" in found.output
    assert "DIFFER" in found.output
    assert "not provided silu" in found.output


@pytest.mark.whole
def test_a_weight_that_is_added_to_one_is_no_fault() -> None:
    found = check(loaded_form("plain_shapes").GemmaRMSNorm, only=["rms_norm"], dtype=["fp32"])
    assert not [row.key for row in found.results if row.status is Status.FAIL], as_text(found)
    assert {row.requirement for row in found.results if row.status is Status.PASS} >= {
        "rms_norm.equation",
        "rms_norm.gradient",
    }


TEXTS = [
    ("A sampler is called with as many rows as it states-0", "top_k_filter", "count long equation", 0),
    ("A sampler is called with as many rows as it states-2", "top_k_filter", "count long equation", 1),
    ("A cache that drops its oldest tokens is judged by a window-0", "kv_cache", "equation window", 0),
    ("A cache that drops its oldest tokens is judged by a window-1", "kv_cache", "equation window", 0),
    ("A cache that drops its oldest tokens is judged by a window-2", "kv_cache", "equation window", 1),
]


@pytest.mark.whole
@pytest.mark.parametrize(("case", "operation", "rows", "exit_status"), TEXTS)
def test_a_text_is_judged(case: str, operation: str, rows: str, exit_status: int) -> None:
    only = [f"{operation}.{row}" for row in rows.split()]
    found = check(text_file(case), only=only, dtype=["fp32"], profile="quick")
    assert found.exit_status == exit_status, found.gaps
