"""CLAIMS are read strictly, and what is wrong with them is said, never fatal and never silent."""

from __future__ import annotations

import warnings

import pytest

from veriformer.verify.results.terminal import console
from veriformer.verify.targets.claims import Claims, ClaimsWarning, read_claims


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
        ({"dtype": ["fp32"]}, "dtype"),
        ({"dtypes": "fp32"}, "dtypes"),
        ({"dtypes": ["fp12"]}, "fp12"),
        ({"devices": 3}, "devices"),
        ({"not_provided": ["rope"]}, "not_provided"),
        ({"conventions": ["x"]}, "conventions"),
        ({"conventions": {"mask.sign": "minus"}}, "mask.sign"),
        ({"conventions": {"causal.alignment": "middle"}}, "middle"),
    ],
)
def test_what_cannot_be_understood_is_named_and_left_out(raw: object, named: str) -> None:
    with pytest.warns(ClaimsWarning, match=named):
        claims = read_claims(raw)
    assert claims.convention("causal.alignment") == "bottom-right"
    assert claims.promises("softmax", "fp64")


def test_names_of_targets_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("transformers:llama: 50 rows")
    assert "transformers:llama: 50 rows" in capsys.readouterr().err
