"""From scores to decisions as PyTorch has it: the masked objective is its cross entropy, greedy choice its argmax."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from veriformer.verify.targets.argument_validation import RawOp

_COMPOSED = "PyTorch has no function for it: it is composed of several by whoever needs it"
NOT_PROVIDED = {
    "smooth_labels": "PyTorch smooths within cross_entropy only",
    "temperature_scale": _COMPOSED,
    "expected_calibration_error": _COMPOSED,
    "top_k_filter": "torch.topk promises no order among equal entries",
    "top_p_filter": _COMPOSED,
    "beam_search": "PyTorch generates no text",
    "bpe_train": "PyTorch has no tokenizer",
    "bpe_encode": "PyTorch has no tokenizer",
    "unigram_segment": "PyTorch has no tokenizer",
}


def _masked_lm_loss(logits: Tensor, labels: Tensor, *, ignore_index: int) -> Tensor:
    """Halves are widened first, as is the custom: PyTorch sums losses in fp16, up to its range (#29429, #61523)."""
    wide = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    rows = wide.reshape(-1, logits.shape[-1])
    return F.cross_entropy(rows, labels.reshape(-1), ignore_index=ignore_index).to(logits.dtype)


def _greedy(logits: Tensor) -> Tensor:
    """Of several maximal values torch.argmax returns the first, as its documentation says."""
    return torch.argmax(logits, -1)


RAW_OPS: dict[str, RawOp] = {"masked_lm_loss": _masked_lm_loss, "greedy": _greedy}
