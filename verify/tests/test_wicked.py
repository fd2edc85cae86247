"""Targets that attack the run: each costs its own rows, is told of, and no other row or file is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests import adapters
from tests.test_engine import verify
from veriformer.verify import check
from veriformer.verify.results import validate

pytestmark = pytest.mark.usefixtures("warm")
WICKED = Path(__file__).parent / "wicked.py"

RIGHT = ("softmax", "logsumexp", "residual", "lm_head", "layer_norm", "mse_loss")
FAILING = (
    *("gelu", "silu", "token_embedding", "causal_mask", "sinusoidal_encoding"),
    *("alibi_bias", "feed_forward"),
)

JUDGED = ("rms_norm", "alibi_slopes")


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, str]:
    """The results of one run over all of it, and what the terminal was told."""
    folder = tmp_path_factory.mktemp("run")
    only = [
        f"{name}.{law}"
        for name in (*RIGHT, *FAILING, *JUDGED, "swiglu", "temperature_scale")
        for law in ("contract", "equation")
    ]
    words = ("--profile", "quick", "--dtype", "fp32", "--jobs", "1", "--timeout", "10")
    done = verify(WICKED, *words, "--only", *only, "--json", folder / "out.json", "--junit", folder / "out.xml")
    assert done.returncode == 1, done.stderr
    assert (folder / "out.xml").is_file()
    document = json.loads((folder / "out.json").read_text(encoding="utf-8"))
    validate(document)
    return document, done.stderr


def statuses(document: Any, operation: str) -> list[str]:
    return [row["status"] for row in document["results"] if row["operation"] == operation]


def test_no_row_is_lost(told: tuple[Any, str]) -> None:
    document, said = told
    assert document["planned"] == document["run"]
    assert document["summary"].get("harness-error", 0) == 0
    assert "Traceback" not in said


@pytest.mark.parametrize("operation", RIGHT)
def test_right_numbers_pass_whatever_is_done_besides(told: tuple[Any, str], operation: str) -> None:
    assert statuses(told[0], operation) == ["pass", "pass"]


@pytest.mark.parametrize("operation", FAILING)
def test_what_is_no_result_fails(told: tuple[Any, str], operation: str) -> None:
    assert statuses(told[0], operation) == ["fail", "blocked"]


def test_a_process_that_ends_is_a_crash(told: tuple[Any, str]) -> None:
    assert statuses(told[0], "swiglu") == ["crash", "blocked"]


@pytest.mark.parametrize("operation", JUDGED)
def test_who_replaces_comparisons_or_hides_a_tensor_is_judged_by_the_true_ones(
    told: tuple[Any, str], operation: str
) -> None:
    assert statuses(told[0], operation) == ["pass", "fail"]


def test_what_is_wrong_now_and_then_is_told_to_be_so(told: tuple[Any, str]) -> None:
    (message,) = [row["message"] for row in told[0]["results"] if row["requirement"] == "temperature_scale.equation"]
    assert "the same call, made 40 times, gave " in message
    assert "times another result than at first" in message


@pytest.mark.whole
@pytest.mark.parametrize("chance", [random.random, np.random.rand], ids=["random", "numpy"])
def test_what_is_wrong_one_time_in_ten_is_so_by_any_generator(chance: Callable[[], float]) -> None:
    def softmax(z: torch.Tensor, dim: int = -1) -> torch.Tensor:
        found = torch.softmax(z, dim)
        return found * 1.01 if chance() < 0.1 else found

    (first,) = check(adapters.target(softmax=softmax), only=["softmax.equation"], profile="quick").findings
    assert first.what == "softmax: gives another result when the same call is made again"


def test_what_was_changed_is_told(told: tuple[Any, str]) -> None:
    assert told[0]["global_state"] == {
        "layer_norm": [
            *("detection of anomalies", "hooks of all modules", "the limit of recursion"),
            "whether garbage is collected",
        ],
        "residual": ["handlers of signals"],
        "lm_head": ["Python's built-in functions"],
        "rms_norm": ["functions that compare numbers"],
    }


def test_messages_are_clean_and_short_for_a_person_and_whole_in_the_file(told: tuple[Any, str]) -> None:
    document, said = told
    (message,) = [row["message"] for row in document["results"] if row["requirement"] == "gelu.contract"]
    assert len(message) > 300_000
    assert "\\ud800" in message
    assert len(said) < 100_000
    assert not any(character in said for character in "\x1b\u202e")
    assert "raised Untold: its message cannot be told" in said
