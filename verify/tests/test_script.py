"""Literals in scripts give the very tensor back: values, dtype and layout."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from veriformer.verify.scripts.script import Recorded, Seed, describe, literal, script, unpacked

SCOPE = {"torch": torch, "inf": float("inf"), "nan": float("nan")}
BASE = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) / 7


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool]
)
@pytest.mark.parametrize(
    "view",
    [
        lambda t: t,
        lambda t: t.transpose(0, 2),
        lambda t: t[:, ::2],
        lambda t: t[:1].expand(5, 3, 4),
        lambda t: t[:, :1].transpose(0, 2).expand(4, 6, 2),
        lambda t: t[0, 0, 0],
        lambda t: t[:0],
    ],
)
def test_a_tensor_comes_back_as_it_was(dtype: torch.dtype, view: object) -> None:
    value = view(BASE.to(dtype))  # type: ignore[operator]
    again = eval(literal(value), SCOPE)
    assert again.dtype == value.dtype
    assert torch.equal(again, value)
    assert again.stride() == value.stride() or value.is_contiguous() or value.numel() == 0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.bool])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_large_tensor_comes_back_from_a_short_text(dtype: torch.dtype, transposed: bool) -> None:
    numbers = torch.randn(64, 178, dtype=torch.float64).mul(4).to(dtype)
    value = numbers.mT if transposed else numbers
    text = literal(value)
    again = eval(text, {**SCOPE, "unpacked": unpacked})
    assert (again.dtype, again.stride()) == (value.dtype, value.stride())
    assert torch.equal(again, value)
    assert len(text) < 1.3 * value.numel() * value.element_size() + 200


def test_a_script_unpacks_large_tensors_by_itself() -> None:
    z = torch.arange(1000.0)
    loader = "class target:\n    double = staticmethod(lambda z: 2 * z)"
    text = script("title", loader, [Recorded("r0", "double", ("z",), {"z": z})], ["raise SystemExit(int(r0.sum()))"])
    with pytest.raises(SystemExit, match="999000"):
        exec(compile(text, "script", "exec"), {})


@given(st.floats(width=32))
def test_every_number_survives(value: float) -> None:
    tensor = torch.tensor([value], dtype=torch.float32)
    assert torch.equal(eval(literal(tensor), SCOPE).nan_to_num(7.0), tensor.nan_to_num(7.0))


def test_a_seed_gives_equal_generators() -> None:
    first, second = (torch.rand(3, generator=eval(literal(Seed(5)), SCOPE)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(first, torch.rand(3, generator=Seed(5).generator()))


def test_a_script_begins_with_the_call_and_ends_with_loading_the_target() -> None:
    text = script("title", "class target:\n    f = staticmethod(abs)", [Recorded("r0", "f", ("z",), {"z": 1})], [])
    places = [
        text.index(part) for part in ("def check(target):\n    r0 = target.f(1)", "class target", "\ncheck(target)")
    ]
    assert places == sorted(places)


def test_a_script_repeats_calls_gradients_and_verdict() -> None:
    z = torch.tensor([0.5, 1.0])
    call = Recorded("r0", "double", ("z",), {"z": z, "by": 2}, ("z",), torch.ones(2))
    loader = "class target:\n    double = staticmethod(lambda z, by: z * by)"
    text = script("title", loader, [call], ["raise SystemExit(int(r0_grad_z.sum()))"])
    with pytest.raises(SystemExit, match="4"):
        exec(compile(text, "script", "exec"), {})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("raise ValueError('dim')", 0),
        ("raise ValueError('axis')", "does not name"),
        ("return z", "bad input was accepted"),
    ],
)
def test_a_script_of_a_refusal(body: str, status: object) -> None:
    call = Recorded("r0", "f", ("z",), {"z": BASE, "dim": 9}, refusal=("dim",))
    loader = f"class target:\n    def f(z, dim):\n        {body}"
    with pytest.raises(SystemExit) as end:
        exec(compile(script("title", loader, [call], []), "script", "exec"), {})
    assert end.value.code == status or str(status) in str(end.value.code)


@pytest.mark.parametrize(("body", "status"), [("raise RuntimeError", 0), ("return z", "bad input was accepted")])
def test_a_script_of_bad_input_that_any_exception_refuses(body: str, status: object) -> None:
    call = Recorded("r0", "f", ("z",), {"z": BASE, "dim": 9}, refusal=())
    text = script("title", f"class target:\n    def f(z, dim):\n        {body}", [call], [])
    with pytest.raises(SystemExit) as end:
        exec(compile(text, "script", "exec"), {})
    assert end.value.code == status


def test_arguments_become_plain_data() -> None:
    assert describe([torch.ones(1, dtype=torch.bfloat16), Seed(3), None]) == [
        {"dtype": "bfloat16", "shape": [1], "values": [1.0]},
        {"generator_seed": 3},
        None,
    ]
