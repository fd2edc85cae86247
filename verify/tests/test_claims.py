"""CLAIMS are read strictly: a key that is not known is an error, a value that means nothing a warning."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest

from veriformer import impl
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.engine.check_run import run_check
from veriformer.verify.engine.profiles import PROFILES
from veriformer.verify.engine.runner import suggested
from veriformer.verify.judging.row import CheckRun
from veriformer.verify.presentation.progress import console
from veriformer.verify.targets.claims import Claims, ClaimsWarning, read_claims
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.loading import wrap


def quiet(raw: object) -> Claims:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_claims(raw)


def test_no_claims_promise_everything() -> None:
    claims = quiet(None)
    assert claims.promises("softmax", "fp16")
    assert claims.convention("causal.alignment") == "bottom-right"
    assert not claims.deviates("causal.alignment")


def test_dtypes_as_a_list_hold_for_every_operation() -> None:
    claims = quiet({"dtypes": ["float32", "torch.float64"]})
    assert [claims.promises("softmax", d) for d in ("fp32", "fp64", "bf16")] == [True, True, False]


def test_dtypes_as_a_dict_hold_for_the_operations_named() -> None:
    claims = quiet({"dtypes": {"softmax": ["fp32"]}})
    assert not claims.promises("softmax", "fp64")
    assert claims.promises("attention", "fp64")


def test_conventions_are_claimed() -> None:
    claims = quiet({"conventions": {"causal.alignment": "top-left", "rope.pairing": "half", "adam.eps": "hat"}})
    assert claims.convention("causal.alignment") == "top-left"
    assert claims.deviates("causal.alignment")


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        (["fp32"], "list"),
        ({"dtypes": "fp32"}, "dtypes"),
        ({"dtypes": ["fp12"]}, "fp12"),
        ({"devices": 3}, "devices"),
        ({"not_provided": ["rope"]}, "not_provided"),
        ({"conventions": ["x"]}, "conventions"),
        ({"conventions": {"causal.alignment": "middle"}}, "middle"),
        ({"provides": {"softmax": ["graidents"]}}, "graidents"),
    ],
)
def test_what_cannot_be_understood_is_named_and_left_out(raw: object, named: str) -> None:
    with pytest.warns(ClaimsWarning, match=named):
        claims = read_claims(raw)
    assert claims.convention("causal.alignment") == "bottom-right"
    assert claims.promises("softmax", "fp64")


@pytest.mark.parametrize(
    ("raw", "named"),
    [
        ({"dtype": ["fp32"]}, r"CLAIMS\['dtype'\].*did you mean 'dtypes'"),
        ({"conventions": {"mask.sign": "minus"}}, "mask.sign"),
        ({"conventions": {"rope.paring": "half"}}, "did you mean 'rope.pairing'"),
        ({"dtypes": {"sofmax": ["fp32"]}}, "did you mean 'softmax'"),
        ({"not_provided": {"sofmax": "later"}}, "did you mean 'softmax'"),
        ({"not_provided": {"softmax.gradeint": "later"}}, "did you mean 'gradient'"),
        ({"provides": {"sofmax": []}}, "did you mean 'softmax'"),
    ],
)
def test_an_unknown_key_is_an_error_that_names_what_comes_close(raw: object, named: str) -> None:
    with pytest.raises(TargetError, match=named):
        read_claims(raw)


class Mute:
    """Cannot say what it is."""

    def __repr__(self) -> str:
        raise RuntimeError

    __str__ = __repr__


def test_claims_of_any_kind_are_read() -> None:
    endless: dict[str, object] = {}
    endless["conventions"] = endless
    for raw in ({Mute(): Mute()}, {(1, 2): 3}, endless):
        with pytest.raises(TargetError, match="CLAIMS"):
            read_claims(raw)
    for raw in (Mute(), {"conventions": {"rope.pairing": Mute()}}):
        with pytest.warns(ClaimsWarning):
            claims = read_claims(raw)
        assert claims.convention("rope.pairing") == "interleaved"
        json.dumps(dict(claims.raw))
    assert quiet({"not_provided": {"softmax": Mute()}}).not_provided == {"softmax": "<Mute>"}


def test_a_claim_that_is_false_is_named_as_what_is_wrong() -> None:
    mine = SimpleNamespace(rope=impl.rope, CLAIMS={"conventions": {"rope.pairing": "half"}})
    row = CheckRun(next(c for c in checks() if c.requirement.slug == "rope.equation"), "fp32")
    target = wrap(mine)
    result = run_check(row, target, replace(PROFILES["quick"], shrinks=0), "1", {})
    said = suggested(row, target, result, "1").message
    assert str(said).startswith("CLAIMS say rope.pairing = 'half', and 'interleaved' is what is followed: result")


def test_names_of_targets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("transformers:llama: 50 rows")
    assert "transformers:llama: 50 rows" in capsys.readouterr().err
