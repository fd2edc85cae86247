"""The kill matrix: its cells, what follows from them, and its document."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from veriformer.verify.catalogue.selection import checks
from veriformer.verify.commands.mutants import mutants
from veriformer.verify.mutants import MUTANTS, SABOTAGES, VARIANTS, mutation_run
from veriformer.verify.mutants import matrix as matrices
from veriformer.verify.mutants.cell import Cell
from veriformer.verify.mutants.matrix import MATRIX_PROFILE, KillMatrix, cells, family, kill_matrix, validate

MUTANT = {mutant.identifier: mutant for mutant in MUTANTS}
VARIANT = {variant.identifier: variant for variant in VARIANTS}
CHECKS = {check.requirement.slug: check for check in checks()}
SHORT = replace(MATRIX_PROFILE, examples=4)


def cell(member, requirement="softmax.equation", *, killed=False, examples=3, status=None):
    return Cell(
        family=family(member),
        member=member.identifier,
        requirement=requirement,
        operation="softmax",
        kind="equation",
        dtype="fp32",
        status=status or ("fail" if killed else "pass"),
        killed=killed,
        examples=examples,
        seconds=0.1,
    )


def matrix(*found):
    return KillMatrix(MATRIX_PROFILE, "s", found)


def test_the_first_killer_needed_the_fewest_examples():
    mutant = MUTANT["SM-02"]
    late, early = cell(mutant, "softmax.range", killed=True, examples=7), cell(mutant, killed=True, examples=2)
    found = matrix(cell(mutant, "softmax.batch", examples=1), late, early)
    assert found.first_killer(mutant) == early
    assert found.survivors == []
    assert found.kills("requirement") == {"softmax.equation": 1, "softmax.range": 1}
    assert found.kills("kind") == {"equation": 1}


def test_survivors_false_alarms_escapes_and_errors_are_named():
    mutant, variant, sabotage = MUTANT["SM-02"], VARIANT["softmax-exp2"], SABOTAGES[0]
    accused, escaped = cell(variant, killed=True), cell(sabotage)
    broken = cell(mutant, status="harness-error")
    found = matrix(broken, accused, escaped)
    assert found.survivors == [mutant]
    assert found.false_alarms == [accused]
    assert found.escapes == [escaped]
    assert found.errors == [broken]
    summary = found.to_dict()["summary"]
    assert (summary["survivors"], summary["false_alarms"], summary["escapes"]) == (["SM-02"], 1, 1)
    validate(found.to_dict())


@pytest.mark.whole
def test_every_pair_of_member_and_requirement_is_run():
    found = cells(MUTANT["KV-01"], SHORT, "slug")
    wanted = {c.requirement.slug for c in checks() if c.operation in MUTANT["KV-01"].operations}
    assert {cell.requirement for cell in found} == wanted
    unharmed = cells(VARIANT["causal-mask-tril"], SHORT, "slug")
    assert {cell.requirement for cell in unharmed} == {slug for slug in wanted if slug.startswith("causal_mask.")}
    assert len({cell.dtype for cell in unharmed}) > 1


def test_a_variant_meets_a_requirement_in_another_dtype_under_another_seed():
    by_seed = [{c.requirement: c.dtype for c in cells(VARIANT["causal-mask-tril"], SHORT, seed)} for seed in "0459"]
    met = {slug: {turn[slug] for turn in by_seed} for slug in by_seed[0]}
    assert all(len(dtypes) > 1 for slug, dtypes in met.items() if len(CHECKS[slug].dtypes) > 1)


@pytest.mark.whole
def test_a_run_gives_a_valid_document_that_names_its_members():
    found = kill_matrix([MUTANT["CLIP-03"], VARIANT["clip-norm-of-norms"]], SHORT, "slug")
    document = found.to_dict()
    validate(document)
    assert [m["id"] for m in document["mutants"]] == ["CLIP-03"]
    assert document["mutants"][0]["first_killer"]["requirement"].startswith("clip_grad_norm.")
    assert document["summary"]["false_alarms"] == 0
    assert document["summary"]["mutants"] == document["summary"]["killed"] == 1


def test_a_document_that_breaks_the_schema_is_refused_with_the_place():
    document = matrix(cell(MUTANT["SM-02"])).to_dict()
    document["mutants"][0]["killed"] = "no"
    with pytest.raises(ValueError, match=r"mutants: mutants/0/killed"):
        validate(document)


@pytest.mark.whole
@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.identifier)
def test_a_sabotage_adapter_fails_what_it_claims(sabotage, monkeypatch):
    """Each requirement is asked of one of the adapters; ``nox -s mutants`` asks all of all."""
    mine = [*CHECKS.values()][SABOTAGES.index(sabotage) :: len(SABOTAGES)]
    monkeypatch.setattr(matrices, "checks", lambda: mine)
    found = cells(sabotage, MATRIX_PROFILE, "slug")
    assert len(found) > 20
    assert [cell.requirement for cell in found if not cell.killed] == []


def test_a_member_on_which_the_suite_fails_is_named(monkeypatch):
    nothing = KillMatrix(MATRIX_PROFILE, "slug", ())
    monkeypatch.setattr(mutation_run, "kill_matrix", lambda *_, **__: (nothing, False))
    told = CliRunner().invoke(mutants, [MUTANTS[0].identifier])
    assert told.exit_code == 3
    assert f"the suite itself failed on mutant:{MUTANTS[0].identifier}" in told.output
