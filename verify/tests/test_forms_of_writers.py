"""A function that writes texts with a model is judged as that model's own ``generate``."""

from __future__ import annotations

from pathlib import Path

import pytest

from veriformer.verify import check
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.models.generation import generating
from veriformer.verify.results import Status
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "models_that_write.py"
ROWS = ("causal_lm.greedy", "causal_lm.crop", "causal_lm.sampled")

FAULTS = {
    ("[:, -context_size:]", "[:, -5:]"): "causal_lm.greedy",
    ("following), 1)", "following.flip(0)), 1)"): "causal_lm.greedy",
    ("logits / temperature", "logits * temperature"): "causal_lm.sampled",
    ("logits < least", "logits <= least"): "causal_lm.sampled",
    ("-context_size:", "1 - context_size:"): "causal_lm.crop",
}


def judged(file: Path) -> dict[str, Status]:
    # Without the rows that these rest on.
    found = check(module_of(file).GPTModel, only=list(ROWS), dtype=["fp64"], profile="default")
    return {row.requirement: row.status for row in found.results if row.requirement in ROWS}


def test_a_function_that_asks_for_a_tokenizer_is_another(monkeypatch: pytest.MonkeyPatch) -> None:
    module = module_of(FILE)
    assert generating(Candidate("GPTModel", module.GPTModel, module)) == "generate"
    monkeypatch.delattr(module, "generate")
    assert not generating(Candidate("GPTModel", module.GPTModel, module))


def test_the_right_one_holds() -> None:
    assert judged(FILE) == dict.fromkeys(ROWS, Status.PASS)


@pytest.mark.parametrize("edit", FAULTS, ids=lambda edit: edit[1])
def test_a_fault_of_the_function_is_found(tmp_path: Path, edit: tuple[str, str]) -> None:
    before = FILE.read_text("utf-8")
    assert before.count(edit[0]) == 1
    file = tmp_path / f"faulty_{list(FAULTS).index(edit)}.py"
    file.write_text(before.replace(*edit), "utf-8")
    found = judged(file)
    assert found[FAULTS[edit]] is Status.FAIL, found
