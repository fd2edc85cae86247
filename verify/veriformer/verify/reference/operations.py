"""Reference entries of operations: signatures and requirements."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from veriformer.spec.explanation import Explanation, Fact
from veriformer.spec.operations import OPERATIONS
from veriformer.spec.operations.call import Operation
from veriformer.spec.requirements import REQUIREMENTS

OBJECTS: Mapping[str, str] = {
    "causal_lm": "Decoder: an `nn.Module`, or a callable without arguments that builds one; `model(ids, "
    "attention_mask=None)` gives logits, or an object with `.logits`. Its `generate` is judged "
    "where it has one.",
    "masked_lm": "Encoder: called as `model(ids, attention_mask=None)`.",
    "seq2seq_lm": "Encoder and decoder: called as `model(ids, attention_mask=None, decoder_input_ids=…)`.",
    "optimizer": "Any `torch.optim.Optimizer`, a class or an instance, called as `optimizer(params, "
    "**options)` and judged by laws alone.",
    "lr_scheduler": "Any `LRScheduler`, built on an optimizer and judged by laws alone.",
}
"""Whole models and objects that train, of which the contract has no signature."""


def names() -> Iterable[str]:
    """Return the operations in the contract's order, then models and objects that train."""
    return [*OPERATIONS, *OBJECTS]


def explain(name: str) -> Explanation:
    """Return how an operation is called, what it gives and what is demanded of it."""
    demanded = [one for one in REQUIREMENTS if one.operation == name]
    equations = dict.fromkeys(number for one in demanded for number in one.equations)
    said = [OBJECTS[name]] if name in OBJECTS else _paragraphs(OPERATIONS[name])
    return Explanation(
        kind="operation",
        name=name,
        remark="operation",
        paragraphs=said,
        facts=(
            Fact("equations", list(equations), names="equation"),
            Fact("requirements", [one.slug for one in demanded], names="requirement"),
        ),
    )


def _paragraphs(operation: Operation) -> list[str]:
    return [f"`{operation.text}`", *operation.says.split("\n\n")]
