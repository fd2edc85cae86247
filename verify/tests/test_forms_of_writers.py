"""A function that writes texts with a model is judged as that model's own ``generate``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.edited_files import edited
from veriformer.verify import check
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.models.causal_lm import FORM
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
    for name in ("generate", "sample_text", "generate_in_steps"):
        monkeypatch.delattr(module, name)
    assert not generating(Candidate("GPTModel", module.GPTModel, module))


@pytest.mark.whole
def test_the_right_one_holds() -> None:
    assert judged(FILE) == dict.fromkeys(ROWS, Status.PASS)


@pytest.mark.whole
@pytest.mark.parametrize("edit", FAULTS, ids=lambda edit: edit[1])
def test_a_fault_of_the_function_is_found(tmp_path: Path, edit: tuple[str, str]) -> None:
    file = tmp_path / f"faulty_{list(FAULTS).index(edit)}.py"
    file.write_text(edited(FILE, [{"old": edit[0], "new": edit[1]}]), "utf-8")
    found = judged(file)
    assert found[FAULTS[edit]] is Status.FAIL, found


@pytest.mark.parametrize("name", ["sample_text", "generate_in_steps"])
def test_one_that_does_not_go_on_from_tokens_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = module_of(FILE)
    candidate = Candidate("GPTModel", module.GPTModel, module)
    for other in ("generate", "sample_text", "generate_in_steps"):
        if other != name:
            monkeypatch.delattr(module, other)
    assert generating(candidate) == name
    found = FORM.match(candidate)
    assert found is not None
    assert [said for said in found.told if said.startswith(f"{name}(model, …) is left out")], found.told
    assert not hasattr(FORM.bind(candidate, {})().inner, "generate")
