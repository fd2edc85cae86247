"""The catalogue: complete, buildable, and by name."""

import json

import pytest

from veriformer.verify import mutants
from veriformer.verify.contract.signatures import POSITIONAL
from veriformer.verify.mutants import MUTANTS, SABOTAGES, VARIANTS
from veriformer.verify.mutants.faults import FAULTS
from veriformer.verify.mutants.records import known_bugs
from veriformer.verify.targets.kinds import MODELS
from veriformer.verify.targets.made_names import identifiers

EVERYTHING = {*POSITIONAL, *MODELS}

# Of segmentation no public bug is known that changes the total; what is known of ties is a variant. Plain gradient
# descent is one line, of which none is known at all.
WITHOUT_KNOWN_BUG = {"unigram_segment", "gradient_descent"}


def test_every_known_bug_is_a_mutant_or_says_why_it_cannot_be():
    for bug in known_bugs():
        assert ("operations" in bug) != ("reason" in bug), bug["id"]
        assert bug["title"]
        assert bug["area"]
        assert bug["link"].startswith("https://github.com/")
    expressible = [bug["id"] for bug in known_bugs() if "operations" in bug]
    assert [mutant.identifier for mutant in MUTANTS] == expressible
    assert set(FAULTS) == set(expressible)
    assert len({bug["id"] for bug in known_bugs()}) == len(known_bugs())


def test_a_mutant_provides_the_operations_it_is_listed_for_and_no_others():
    listed = {bug["id"]: bug["operations"] for bug in known_bugs() if "operations" in bug}
    for mutant in MUTANTS:
        assert list(vars(mutant.build())) == listed[mutant.identifier]
        assert set(mutant.operations) <= EVERYTHING


def test_every_operation_has_mutants_and_variants():
    for family, lacking in ((MUTANTS, WITHOUT_KNOWN_BUG), (VARIANTS, set())):
        assert {name for member in family for name in member.operations} == EVERYTHING - lacking


def test_every_sabotage_adapter_provides_everything():
    assert [s.identifier for s in SABOTAGES] == ["zeros", "constant", "nan", "identity", "garbage"]
    for sabotage in SABOTAGES:
        assert set(vars(sabotage.build())) == EVERYTHING


def test_names_are_unique_and_built_by_name():
    for family, members in {"mutant": MUTANTS, "variant": VARIANTS, "sabotage": SABOTAGES}.items():
        names = [member.identifier for member in members]
        assert len(set(names)) == len(names)
        for member in members:
            built, made = mutants.build(family, member.identifier), member.build()
            assert set(vars(built)) == set(vars(made))


def test_names_that_are_known_without_building_are_those_of_the_catalogue():
    catalogue = {"mutant": MUTANTS, "variant": VARIANTS, "sabotage": SABOTAGES}
    found = {family: tuple(one.identifier for one in members) for family, members in catalogue.items()}
    assert identifiers() == found


def test_an_unknown_name_is_answered_with_what_exists():
    with pytest.raises(LookupError, match=r"mutant 'GQA-99': expected one of .*GQA-01"):
        mutants.build("mutant", "GQA-99")
    with pytest.raises(LookupError, match="expected one of mutant, variant, sabotage"):
        mutants.build("mutation", "GQA-01")


def test_claims_of_variants_are_carried():
    claims = {v.identifier: getattr(v.build(), "CLAIMS", None) for v in VARIANTS}
    assert claims["layer-norm-one-pass"] == {"conventions": {"layer_norm.variance": "one-pass"}}
    assert claims["cross-entropy-nan-without-target"] == {"conventions": {"cross_entropy.no_target": "nan"}}
    assert {name for name, claimed in claims.items() if "conventions" in (claimed or {})} == {
        "cross-entropy-nan-without-target",
        "layer-norm-one-pass",
        "adam-eps-hat",
        "adam-eps-inside",
        "adamw-decay-after",
        "sgd-first-velocity-gradient",
        "sgd-gradients-undamped",
        "warmup-from-one",
        "rope-half",
    }


def test_the_data_are_plain_json():
    assert json.loads(json.dumps(known_bugs())) == list(known_bugs())
