"""Arguments that a signature leaves out are not provided, never a violation; all the rest is judged."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from veriformer import impl
from veriformer.verify import check, load
from veriformer.verify.catalogue.selection import checks
from veriformer.verify.contract.signatures import OPTIONAL, POSITIONAL
from veriformer.verify.results import Results, Status
from veriformer.verify.targets.claims import read_claims
from veriformer.verify.targets.error import TargetError
from veriformer.verify.targets.loading import wrap

pytestmark = pytest.mark.usefixtures("warm")
SETTLED = {Status.PASS, Status.NOT_PROVIDED, Status.NOT_APPLICABLE, Status.DEVIATION}
FAMILIES = ("contract", "equation", "gradient", "batch", "sensitivity", "refusal", "range")
"""Each draws its calls, or computes what they should give, in its own way; layout and numpy_numbers change the values
of calls that are drawn as those of equation, and are judged where all there is is."""
ALONE = [(operation, (name,)) for operation in ("attention", "rope", "adamw") for name in OPTIONAL[operation]]
TOGETHER = [(operation, tuple(names)) for operation, names in OPTIONAL.items() if operation != "cached_attention"]


def without(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[..., Any]:
    """Return the function with these arguments off its signature; it cannot be called with them."""

    def called(*given: Any, **options: Any) -> Any:
        assert not options.keys() & set(names)
        return function(*given, **options)

    signature = inspect.signature(function)
    kept = [p for p in signature.parameters.values() if p.name not in names]
    called.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    return called


def judged(operation: str, names: tuple[str, ...]) -> Results:
    """Quickly, what holds for every operation, and all there is for two, of an implementation that lacks arguments."""
    mine = SimpleNamespace(**{operation: without(getattr(impl, operation), names)})
    known = {check_.requirement.slug for check_ in checks()}
    only = {f"{operation}.{family}" for family in FAMILIES} & known
    whole = (operation, names) in TOGETHER and operation in ("attention", "transformer_block")
    return check(mine, only=[operation] if whole else sorted(only), dtype=["fp32"], profile="quick")


def test_the_contract_lists_what_may_be_left_out_of_every_signature() -> None:
    for operation, positional in POSITIONAL.items():
        parameters = inspect.signature(getattr(impl, operation)).parameters
        defaults = {n: p.default for n, p in parameters.items() if n not in positional and p.default is not p.empty}
        defaults.pop("dtype", None)  # of a cache; the contract asks for it
        known = dict(OPTIONAL.get(operation, {}))
        if operation == "cached_attention":
            known = {name: value for name, value in known.items() if name not in OPTIONAL["kv_cache"]}
        assert known == defaults, operation


@pytest.mark.whole
@pytest.mark.parametrize(
    ("operation", "names"), [*TOGETHER, *ALONE], ids=lambda x: x if isinstance(x, str) else "+".join(x)
)
def test_nothing_is_violated_by_what_is_left_out(operation: str, names: tuple[str, ...]) -> None:
    found = judged(operation, names)
    assert {row.key: row.message for row in found.results if row.status not in SETTLED} == {}
    passed = {row.requirement.rpartition(".")[2] for row in found.results if row.status is Status.PASS}
    assert passed & {"equation", "contract"}
    for row in found.results:
        if row.status is Status.NOT_PROVIDED:
            assert set(names) & set(str(row.message).replace(",", "").split()), row.message


@pytest.mark.whole
def test_an_argument_that_is_taken_and_ignored_is_a_violation() -> None:
    def attention(q: Any, k: Any, v: Any, *, softcap: float | None = None, **options: Any) -> Any:
        return impl.attention(q, k, v, **options)

    found = check(SimpleNamespace(attention=attention), only=["attention.softcap"], dtype=["fp32"], profile="quick")
    assert Status.FAIL in {row.status for row in found.results}


@pytest.mark.whole
def test_what_is_left_out_is_still_wrong_elsewhere() -> None:
    """A kernel without dropout, bias and windows whose heads are tiled instead of repeated."""

    def attention(q: Any, k: Any, v: Any, *, is_causal: bool = False) -> Any:
        repeats = q.shape[1] // k.shape[1]
        return impl.attention(q, k.repeat(1, repeats, 1, 1), v.repeat(1, repeats, 1, 1), is_causal=is_causal)

    only = ["attention.equation", "attention.grouped_heads"]
    found = check(SimpleNamespace(attention=attention), only=only, dtype=["fp32"], profile="quick")
    assert set(only) <= {row.requirement for row in found.results if row.status is Status.FAIL}


@pytest.mark.whole
def test_a_cache_without_windows_does_not_fail_what_attends_through_it() -> None:
    mine = SimpleNamespace(
        kv_cache=without(impl.kv_cache, ("window", "quantization")), cached_attention=impl.cached_attention
    )
    found = check(mine, only=["kv_cache", "cached_attention"], dtype=["fp32"], profile="quick")
    assert {row.key: row.message for row in found.results if row.status not in SETTLED} == {}
    rows = {row.requirement: row for row in found.results}
    assert rows["cached_attention.equation"].status is Status.PASS
    assert "takes no" in str(rows["cached_attention.int8"].message)


@pytest.mark.parametrize("spec", ["impl", "torch", "transformers"])
def test_what_ships_lacks_nothing(spec: str) -> None:
    target = load(spec)
    assert {
        operation: target.unsupported_args(operation) for operation in POSITIONAL if target.unsupported_args(operation)
    } == {}


def test_a_signature_that_cannot_be_read_lacks_nothing() -> None:
    built_in = SimpleNamespace(softmax=torch.softmax, gelu=lambda x, **options: x)
    assert not wrap(built_in).unsupported_args("softmax")
    assert not wrap(built_in).unsupported_args("gelu")


@torch.no_grad()
def forward_only(q: Any, k: Any, v: Any, **options: Any) -> Any:
    return impl.attention(q, k, v, **options)


INFERENCE = {"not_provided": {"attention.gradient": "inference only"}}


@pytest.mark.whole
def test_results_are_judged_without_gradients_where_none_are_claimed() -> None:
    names = ("gradient", "batch", "window", "hidden_poison", "conservation", "accuracy")
    mine = SimpleNamespace(attention=forward_only, CLAIMS=INFERENCE)
    only = [f"attention.{name}" for name in names]
    rows = check(mine, only=only, dtype=["fp32", "bf16"], profile="quick").results
    reason = "attention.gradient: inference only"
    assert {row.key: row.message for row in rows if row.status is not Status.PASS} == {
        "attention.gradient[fp32-cpu]": reason,
        "attention.gradient[bf16-cpu]": reason,
        "attention.conservation[fp32-cpu]": reason,
    }
    silent = SimpleNamespace(attention=forward_only)
    rows = check(silent, only=["attention.gradient"], dtype=["fp32"], profile="quick").results
    assert {str(row.message) for row in rows if row.requirement == "attention.gradient"} == {
        "not provided: gradients (the result carries no graph)"
    }


@pytest.mark.whole
def test_what_computes_no_gradients_may_still_be_wrong_and_its_script_shows_it(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(
        "import torch\nfrom veriformer import impl\n\n\n"
        "@torch.no_grad()\ndef attention(q, k, v, *, window=None, **options):\n"
        "    return impl.attention(q, k, v, window=window and window + 1, **options)\n\n\n"
        f"CLAIMS = {INFERENCE}\n"
    )
    found = check(load(str(mine)).implementation, only=["attention.window"], dtype=["fp32"], profile="quick")
    (row,) = (row for row in found.results if row.requirement == "attention.window")
    assert row.status is Status.FAIL
    assert row.counterexample is not None
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    script = [sys.executable, "-c", str(row.counterexample.script)]
    ran = subprocess.run(script, env=paths, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (1, "violated\n")


@pytest.mark.whole
def test_what_is_lacking_can_be_claimed_of_a_signature_that_does_not_tell() -> None:
    def attention(q: Any, k: Any, v: Any, **options: Any) -> Any:
        assert "softcap" not in options
        return impl.attention(q, k, v, **options)

    claims = {"not_provided": {"attention.softcap": "our kernel has none"}}
    only = ["attention.equation", "attention.softcap"]
    found = check(SimpleNamespace(attention=attention, CLAIMS=claims), only=only, dtype=["fp32"], profile="quick")
    told = {row.requirement: (row.status, row.message) for row in found.results}
    assert told["attention.equation"] == (Status.PASS, None)
    assert told["attention.softcap"] == (Status.NOT_PROVIDED, "attention.softcap: our kernel has none")


@pytest.mark.parametrize("key", ["attention.softcaps", "attentions.softcap", "softmax.bias"])
def test_a_claim_about_what_the_contract_does_not_have_is_an_error(key: str) -> None:
    with pytest.raises(TargetError, match=rf"{key.partition('.')[0]}.*unknown key"):
        read_claims({"not_provided": {key: "none"}})
