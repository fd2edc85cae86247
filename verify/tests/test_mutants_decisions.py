"""Faults of decisions, generation and text leave the right answer on their trigger, and keep to it off the trigger."""

from typing import Any

import pytest
import torch

from veriformer.verify import mutants
from veriformer.verify.targets.loading import load


def search(penalty: float, rows: dict[tuple[int, ...], list[float]]) -> dict[str, Any]:
    """Beam search from id 1 over three ids, 0 the end; what has no row ends at once."""

    def step(ids):
        return torch.tensor([rows.get(tuple(text[1:]), [1.0, 0.0, 0.0]) for text in ids.tolist()]).log()

    options = {"beam_width": 2, "max_length": 4, "eos": 0, "length_penalty": penalty}
    return {"step": step, "start": torch.tensor([1]), **options}


LATER = {(): [0.5, 0.45, 0.05], (1,): [0.02, 0.98, 0.0], (1, 1): [0.02, 0.98, 0.0]}
SHORTER = {(): [0.3, 0.4, 0.3], (1,): [0.6, 0.4, 0.0], (1, 1): [1.0, 0.0, 0.0]}
ENDING = {(): [0.9, 0.1, 0.0]}
NUCLEUS = torch.tensor([0.5, 0.3, 0.2]).log()
PROBS = torch.tensor([[1.0, 0.0], [0.875, 0.125]])
RIGHT = torch.tensor([0, 1])
MERGES = [(b"b", b"c"), (b"a", b"b")]

# identifier: operation, arguments on the trigger, arguments off it
CASES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "CAL-01": (
        "expected_calibration_error",
        {"probs": PROBS, "target": 1 - RIGHT, "num_bins": 2},
        {"probs": 0.9 * PROBS, "target": 1 - RIGHT, "num_bins": 2},
    ),
    "CAL-04": (
        "expected_calibration_error",
        {"probs": PROBS[:1], "target": RIGHT[:1], "num_bins": 4},
        {"probs": PROBS[1:], "target": RIGHT[:1], "num_bins": 4},
    ),
    "SMP-01": ("top_p_filter", {"logits": NUCLEUS, "p": 0.7}, {"logits": NUCLEUS, "p": 1.0}),
    "SMP-02": ("top_p_filter", {"logits": NUCLEUS, "p": 1e-9}, {"logits": NUCLEUS, "p": 0.7}),
    "TOPK-01": (
        "top_k_filter",
        {"logits": torch.tensor([1.0, 2.0, 2.0]), "k": 1},
        {"logits": torch.tensor([1.0, 2.0, 2.0]), "k": 2},
    ),
    "GREEDY-01": ("greedy", {"logits": torch.tensor([1.0, 2.0, 2.0])}, {"logits": torch.tensor([1.0, 2.0, 0.0])}),
    "BEAM-01": ("beam_search", search(2.0, LATER), search(0.0, LATER)),
    "BEAM-03": ("beam_search", search(2.0, LATER), search(0.0, ENDING)),
    "BEAM-04": ("beam_search", search(1.0, SHORTER), search(0.0, SHORTER)),
    "TOK-01": ("bpe_encode", {"text": "abc", "merges": MERGES}, {"text": "ab", "merges": MERGES}),
    "TOK-07": ("bpe_encode", {"text": "abc", "merges": MERGES}, {"text": "bc", "merges": MERGES}),
    "TOK-03": (
        "bpe_train",
        {"texts": ["aaaa", "bc", "bc"], "num_merges": 1},
        {"texts": ["bc", "bc", "ad"], "num_merges": 1},
    ),
}
REPEATED = {
    "SM-02": ("temperature_scale", {"logits": torch.tensor([100.0, 0.0]), "temperature": 0.5}),
    "CE-01": ("masked_lm_loss", {"logits": torch.zeros(1, 3), "labels": torch.tensor([-100])}),
    "CE-02": ("masked_lm_loss", {"logits": torch.zeros(2, 3), "labels": torch.tensor([-100, 1])}),
    "LN-02": ("rms_norm", {"x": torch.tensor([0.25, 0.25]), "weight": None, "eps": 0.25}),
    "LS-02": ("smooth_labels", {"target": torch.tensor([1]), "num_classes": 4, "alpha": 0.5}),
}


def answer(implementation: Any, operation: str, arguments: dict[str, Any]) -> Any:
    found = getattr(implementation, operation)(**arguments)
    if operation == "beam_search":
        return found[0].tolist(), round(float(found[1]), 6)
    return found.double().round(decimals=6).tolist() if isinstance(found, torch.Tensor) else found


def right(operation: str, arguments: dict[str, Any]) -> Any:
    return answer(load("impl").implementation, operation, arguments)


@pytest.mark.parametrize("identifier", CASES)
def test_a_mutant_shows_on_its_trigger_and_not_off_it(identifier):
    operation, on, off = CASES[identifier]
    mutant = mutants.build("mutant", identifier)
    assert answer(mutant, operation, on) != right(operation, on)
    assert answer(mutant, operation, off) == right(operation, off)


@pytest.mark.parametrize("identifier", REPEATED)
def test_a_bug_is_repeated_on_every_operation_that_it_concerns(identifier):
    operation, arguments = REPEATED[identifier]
    mutant = mutants.build("mutant", identifier)
    assert operation in vars(mutant)
    assert answer(mutant, operation, arguments) != right(operation, arguments)
