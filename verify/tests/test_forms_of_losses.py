"""Losses, filters and samplers as people write them: smoothing, log-probabilities, chunks, classes; right and wrong."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch

from tests.source_texts import read_pins, recognise_text
from veriformer.verify.forms.added_terms import SQUARED_NORMALISER, with_squared_normaliser
from veriformer.verify.forms.binding import bind
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.forms.score_domains import as_scores
from veriformer.verify.forms.smoothing import without_probability

OF_LOG_PROBABILITIES = """
def smoothed_nll(lprobs, target, epsilon, ignore_index=None, reduction="mean", dim=-1):
    target = target.unsqueeze(dim)
    hidden = target.eq(-100 if ignore_index is None else ignore_index)
    nll = -lprobs.gather(dim, target.masked_fill(hidden, 0)).masked_fill(hidden, 0.0)
    smooth = -lprobs.sum(dim, keepdim=True).masked_fill(hidden, 0.0)
    loss = (1 - epsilon) * nll + epsilon / lprobs.size(dim) * smooth
    if reduction == "none":
        return loss
    return loss.sum() / {count} if reduction == "mean" else loss.sum()
"""


@pytest.mark.whole
def test_smoothing_over_log_probabilities_is_given_such() -> None:
    pin = read_pins(OF_LOG_PROBABILITIES.format(count="(~hidden).sum()"))["cross_entropy"]
    assert pin.everywhere
    assert pin.readings["over"] == "log-probabilities"
    assert not read_pins(OF_LOG_PROBABILITIES.format(count="target.numel()"))["cross_entropy"].everywhere


@pytest.mark.whole
def test_targets_that_are_looked_up_before_they_are_left_out_are_classes() -> None:
    text = OF_LOG_PROBABILITIES.format(count="(~hidden).sum()")
    assert read_pins(text)["cross_entropy"].readings["ignored"] == "any id"
    looked_up = text.replace("target.masked_fill(hidden, 0)", "target")
    assert looked_up != text
    assert read_pins(looked_up)["cross_entropy"].readings["ignored"] == "a class"


FLAGGED = """
import torch
import torch.nn.functional as F

def my_loss(pred, gold, pad_idx, smoothing=False):
    kept = gold != pad_idx
    if not smoothing:
        return F.cross_entropy(pred, gold, ignore_index=pad_idx, reduction="sum")
    eps, n = 0.1, pred.size(1)
    hot = torch.zeros_like(pred).scatter(1, gold[:, None], 1)
    hot = hot * (1 - eps) + (1 - hot) * eps / {others}
    return -(hot * F.log_softmax(pred, dim=1)).sum(1)[{rows}].sum()
"""


@pytest.mark.whole
def test_a_flag_switches_on_the_smoothing_that_the_code_has_for_itself() -> None:
    pin = read_pins(FLAGGED.format(others="(n - 1)", rows="kept"))["cross_entropy"]
    assert pin.everywhere
    assert pin.readings["spread"] == "all others"
    assert not read_pins(FLAGGED.format(others="(n - 1)", rows=":"))["cross_entropy"].everywhere


DISTRIBUTION = """
import torch
from torch import nn

class SmoothedTargets(nn.Module):
    def __init__(self, smoothing_value, pad_token_id, trg_vocab_size):
        super().__init__()
        self.value, self.pad, self.size = smoothing_value, pad_token_id, trg_vocab_size

    def forward(self, ids):
        found = torch.full((len(ids), self.size), self.value / (self.size - 2))
        found.scatter_(1, ids, 1.0 - self.value)
        found[:, self.pad] = 0.0
        return found.masked_fill({hidden} == self.pad, 0.0)
"""


@pytest.mark.whole
def test_a_distribution_is_judged_by_the_loss_that_it_is_made_for() -> None:
    pin = read_pins(DISTRIBUTION.format(hidden="ids"))["cross_entropy"]
    assert pin.everywhere
    assert pin.readings["gives"] == "distribution"
    assert not read_pins(DISTRIBUTION.format(hidden="found"))["cross_entropy"].everywhere


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_score_of_a_class_without_probability_is_finite_and_leaves_it_none(dtype: torch.dtype) -> None:
    rows = torch.tensor([[1.0, -3.0], [0.0, -1e4]], dtype=dtype)
    scores = torch.cat((rows, without_probability(rows)), -1)
    assert bool(scores.isfinite().all())
    assert torch.equal(scores.double().softmax(-1)[:, -1], torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize(("largest", "dtype"), [(6.5e4, torch.float16), (1e12, torch.float32)])
def test_scores_that_leave_no_number_below_them_are_not_offered(largest: float, dtype: torch.dtype) -> None:
    with pytest.raises(NotOffered, match=f"{dtype} has no score so far below"):
        without_probability(torch.tensor([[-largest, largest]], dtype=dtype))


LOG_PROBS = """
import torch

def selective_log_softmax(logits, index):
    chosen = torch.gather(logits, -1, index.unsqueeze(-1)).squeeze(-1)
    return chosen - {total}
"""


@pytest.mark.whole
def test_log_probabilities_of_targets_are_terms_of_a_cross_entropy() -> None:
    assert read_pins(LOG_PROBS.format(total="logits.logsumexp(-1)"))["cross_entropy"].everywhere
    assert not read_pins(LOG_PROBS.format(total="logits.amax(-1)"))["cross_entropy"].everywhere


def test_results_far_off_are_wrong_under_the_name_of_the_operation_alone() -> None:
    text = LOG_PROBS.format(total="(chosen - 1)")
    assert not read_pins(text)["cross_entropy"].everywhere
    assert read_pins(text.replace("selective", "reward")) == {}


CALIBRATION = """
import {library} as xp

class {name}:
    def loss(self, output, labels, n_bins=15, logits=True):
        if logits:
            output = xp.exp(output - output.max(axis=1, keepdims=True))
            output = output / output.sum(axis=1, keepdims=True)
        confidence, right = output.max(axis=1), output.argmax(axis=1) == labels
        total = 0.0
        for low in xp.arange(n_bins):
            held = (confidence > low / n_bins) * (confidence <= (low + 1) / n_bins)
            if held.any():
                total += abs(confidence[held].mean() - right[held].mean()) * {share}
        return total
"""


def test_a_class_over_arrays_may_have_the_error_in_a_method() -> None:
    right = CALIBRATION.format(library="numpy", name="ECELoss", share="held.mean()")
    assert read_pins(right)["expected_calibration_error"].everywhere
    wrong = CALIBRATION.format(library="numpy", name="ECELoss", share="1 / n_bins")
    assert not read_pins(wrong)["expected_calibration_error"].everywhere
    assert not read_pins(right.replace("ECELoss", "MCELoss"))
    assert read_pins(right.replace("ECELoss", "TemperedECELoss").replace("return total", "return 9 + total")) == {}


OF_LOGITS = """
import torch
from torch import nn

class _ECELoss(nn.Module):
    def __init__(self, n_bins=15):
        super().__init__()
        self.edges = torch.linspace(0, 1, n_bins + 1)

    def forward(self, logits, labels):
        confidence, chosen = logits.softmax(1).max(1)
        total = torch.zeros(1)
        for low, high in zip(self.edges[:-1], self.edges[1:], strict=True):
            held = confidence.gt(low.item()) * confidence.le(high.item())
            if held.any():
                hit = ({hit}).float().mean()
                total += (confidence[held].mean() - hit).abs() * held.float().mean()
        return total
"""


def test_calibration_of_logits_is_given_logits() -> None:
    pin = read_pins(OF_LOGITS.format(hit="chosen.eq(labels)[held]"))["expected_calibration_error"]
    assert pin.everywhere
    assert pin.readings["takes"] == "logits"
    assert not read_pins(OF_LOGITS.format(hit="chosen.eq(labels) * held"))["expected_calibration_error"].everywhere


def test_a_class_without_weights_over_arrays_is_called_with_arrays() -> None:
    text = """
import numpy as np

class Softmax():
    def __call__(self, x):
        e = np.exp(x - np.max(x, axis=-1, keepdims=True))
        return e / np.sum(e, axis={axis}, keepdims=True)
"""
    assert read_pins(text.format(axis=-1))["softmax"].everywhere
    assert not read_pins(text.format(axis=0))["softmax"].everywhere


CHUNKED = """
import torch
import torch.nn.functional as F

def chunked_cross_entropy(logits, targets, chunk_size=128):
    if isinstance(logits, list):
        targets = [t.reshape(-1) for t in targets.split(logits[0].size(1), dim=1)]
        logits = [x.reshape(-1, x.size(-1)) for x in logits]
    else:
        logits = logits.reshape(-1, logits.size(-1)).split(chunk_size)
        targets = targets.reshape(-1).split(chunk_size)
    sums = [F.cross_entropy(x, t, ignore_index=-1, reduction="{terms}") for x, t in zip(logits, targets)]
    return {whole}
"""


@pytest.mark.whole
def test_a_loss_in_chunks_is_called_with_chunks() -> None:
    right = "torch.stack(sums).sum() / max(1, sum((t != -1).sum() for t in targets))"
    pin = read_pins(CHUNKED.format(terms="sum", whole=right))["cross_entropy"]
    assert (pin.everywhere, pin.readings["ignored"]) == (True, "-1")
    assert not read_pins(CHUNKED.format(terms="mean", whole="torch.stack(sums).mean()"))["cross_entropy"].everywhere


BUILT_LOSS = """
import torch

class CrossEntropyLoss(torch.nn.Module):
    def __init__(self, ignore_index=-100, reduction="mean", eps=1e-12):
        super().__init__()
        self.ignore_index, self.reduction = ignore_index, reduction

    def forward(self, logits, targets):
        kept = targets != self.ignore_index
        terms = -logits.log_softmax(-1).gather(-1, targets.clamp(min=0)[..., None])[..., 0] * kept
        return {{"none": terms, "sum": terms.sum(), "mean": {mean}}}[self.reduction]
"""


@pytest.mark.whole
def test_the_options_of_a_loss_may_be_its_constructors() -> None:
    scope: dict[str, Any] = {}
    exec(BUILT_LOSS.format(mean="terms.sum() / kept.sum()"), scope)
    offered = inspect.signature(bind("functions/cross_entropy", scope["CrossEntropyLoss"])).parameters
    assert list(offered) == ["logits", "target", "ignore_index", "reduction"]
    right = read_pins(BUILT_LOSS.format(mean="terms.sum() / kept.sum().clamp(min=1)"))["cross_entropy"]
    assert right.everywhere
    assert not read_pins(BUILT_LOSS.format(mean="terms.mean()"))["cross_entropy"].everywhere


FILTERS = """
import torch

class TopPWarper:
    def __init__(self, top_p):
        self.top_p = top_p

    def __call__(self, input_ids, scores):
        ordered, places = scores.sort(descending=True)
        p = ordered.softmax(-1)
        removed = p.cumsum(-1) {minus} >= self.top_p
        removed[..., 0] = False
        return scores.masked_fill(removed.scatter(-1, places, removed), -float("inf"))

class NucleusSampler:
    def __init__(self, p, sampler):
        self.p, self.sampler = p, sampler

    def __call__(self, logits):
        ordered, places = logits.softmax(-1).sort(descending=True)
        kept = ordered.cumsum(-1) - ordered < self.p
        kept[..., 0] = True
        drawn = self.sampler(ordered.log().masked_fill(~kept, -float("inf")))
        return {token}
"""


@pytest.mark.whole
def test_filters_and_samplers_may_be_classes() -> None:
    gathered = "places.gather(-1, drawn[..., None])[..., 0]"
    found = recognise_text(FILTERS.format(minus="- p", token=gathered)).pins
    assert [(pin.operation, pin.everywhere) for pin in found] == [("top_p_filter", True)] * 2
    wrong = recognise_text(FILTERS.format(minus="", token="drawn")).pins
    assert [pin.everywhere for pin in wrong] == [False, False]


LOG_SOFTMAX = """
import torch

def log_softmax(x, dim=-1):
    x = x - x.amax(dim, keepdim=True)
    return x - x.exp().sum({over}, keepdim=True).log()

def cross_entropy(logits, target):
    return torch.nn.functional.cross_entropy(logits, target)
"""


def log_softmax(logits: torch.Tensor, dim: int = -1) -> torch.Tensor:
    return torch.log_softmax(logits, dim)


@pytest.mark.whole
def test_log_probabilities_of_all_classes_are_judged_at_targets_along_every_axis() -> None:
    for over, right in (("dim", True), ("-1", False)):
        whole, terms = recognise_text(LOG_SOFTMAX.format(over=over)).pins
        assert (whole.name, whole.everywhere) == ("cross_entropy", True)  # that of the suite comes second
        assert (terms.name, terms.everywhere) == ("log_softmax", right)
    logits = torch.randn(3, 4, requires_grad=True)
    loss = bind("functions/log_softmax", log_softmax)
    (gradient,) = torch.autograd.grad(loss(logits, torch.tensor([0, 1, 3])), logits)
    assert bool((gradient != 0).all())


MASKED = """
import torch.nn.functional as F

def masked_cross_entropy(logits, targets, mask):
    terms = F.cross_entropy(logits.transpose(1, 2), targets, reduction="none") * mask
    return terms.sum() / {count}
"""


@pytest.mark.whole
def test_a_mask_of_targets_says_which_are_counted() -> None:
    assert read_pins(MASKED.format(count="mask.sum().clamp(min=1)"))["cross_entropy"].everywhere
    assert not read_pins(MASKED.format(count="mask.numel()"))["cross_entropy"].everywhere


OF_SEQUENCES = """
import torch
from torch import nn

class LabelSmoothingLoss(nn.Module):
    def __init__(self, size, padding_idx, smoothing):
        super().__init__()
        self.size, self.padding_idx, self.smoothing = size, padding_idx, smoothing

    def forward(self, x, target):
        assert x.size(2) == self.size
        hidden = target == self.padding_idx
        shares = torch.full_like(x, self.smoothing / self.size)
        shares.scatter_add_(2, target.masked_fill(hidden, 0)[..., None], torch.full_like(x, 1 - self.smoothing))
        return -(shares * x.log_softmax(-1)).sum(-1).masked_fill(hidden, 0).sum() / {of}
"""


@pytest.mark.whole
def test_a_loss_of_sequences_may_be_averaged_over_the_batch() -> None:
    pin = read_pins(OF_SEQUENCES.format(of="x.size(0)"))["cross_entropy"]
    assert (pin.everywhere, pin.readings["shape"], pin.readings["reduction"]) == (True, "sequences", "sum")
    assert not read_pins(OF_SEQUENCES.format(of="target.numel()"))["cross_entropy"].everywhere


OF_A_MATRIX = """
import numpy as np

def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis={axis}, keepdims=True)

def log_softmax(logits):
    x = logits - logits.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis={axis}, keepdims=True))
"""


@pytest.mark.whole
def test_what_names_the_second_axis_is_read_as_of_a_matrix() -> None:
    right = read_pins(OF_A_MATRIX.format(axis=1))
    assert {name: (pin.everywhere, pin.readings["rows"]) for name, pin in right.items()} == {
        "softmax": (True, "[R,V]"),
        "cross_entropy": (True, "[R,V]"),
    }
    assert not any(pin.everywhere for pin in read_pins(OF_A_MATRIX.format(axis=0)).values())


SMOOTHED_BY_ITS_CONSTRUCTOR = """
from torch import nn

class CrossEntropyLoss(nn.Module):
    def __init__(self, weight=1.0, label_smoothing=0.0, ignore_label=0, kind="all"):
        super().__init__()
        self.weight, self.alpha, self.hidden, self.kind = weight, label_smoothing, ignore_label, kind

    def forward(self, logits, labels):
        kept = (labels != self.hidden).float()
        p = logits.log_softmax(-1)
        nll = -p.gather(-1, labels[..., None])[..., 0] * kept
        rest = {spread} * kept
        return self.weight * ((1 - self.alpha) * nll + self.alpha * rest).sum() / kept.sum(), 1
"""


@pytest.mark.whole
def test_a_loss_whose_constructor_smooths_is_built_with_a_smoothing() -> None:
    assert read_pins(SMOOTHED_BY_ITS_CONSTRUCTOR.format(spread="-p.mean(-1)"))["cross_entropy"].everywhere
    assert not read_pins(SMOOTHED_BY_ITS_CONSTRUCTOR.format(spread="-p.sum(-1)"))["cross_entropy"].everywhere


NUCLEUS = """
import torch

def top_p_filter(probs, p):
    ordered, places = torch.sort(probs, dim=-1, descending=True, stable={stable})
    kept = torch.zeros_like(probs).scatter(-1, places, (ordered.cumsum(-1) - ordered < p).to(probs.dtype))
    return probs * kept
"""


@pytest.mark.whole
def test_a_sort_that_is_not_stable_leaves_the_order_of_ties_open() -> None:
    unstable, stable = (read_pins(NUCLEUS.format(stable=one))["top_p_filter"] for one in (False, True))
    assert unstable.everywhere
    assert unstable.conventions == {"choice.ties": "unspecified"}
    assert (stable.everywhere, stable.conventions) == (True, {})


SAMPLE = """
def sample(logits, top_p=1.0):
    return torch.multinomial(top_p_filter(torch.softmax(logits, dim=-1), top_p), 1)
"""


@pytest.mark.whole
def test_a_sampler_leaves_the_order_of_ties_open_as_its_filter_does() -> None:
    for stable, claimed in ((False, {"choice.ties": "unspecified"}), (True, {})):
        found = recognise_text(NUCLEUS.format(stable=stable) + SAMPLE).pins
        assert {pin.name: pin.conventions for pin in found} == {"top_p_filter": claimed, "sample": claimed}


def test_a_probability_that_is_rounded_to_nothing_tells_nothing() -> None:
    with pytest.raises(NotOffered, match="a probability is rounded to 0"):
        as_scores(torch.tensor([[0.0, -2000.0]]), "probabilities")


WITH_A_TERM = """
import torch
from torch import nn

class CrossEntropyWithTerm(nn.CrossEntropyLoss):
    def __init__(self, eps=0.001, ignore_index=-100, label_smoothing=0.0):
        super().__init__(ignore_index=ignore_index, label_smoothing=label_smoothing)
        self.eps = eps

    def forward(self, input, target):
        return super().forward(input, target) + self.eps * {term}

def cross_entropy(logits, target):
    return torch.nn.functional.cross_entropy(logits, target) + 0.001 * (logits.logsumexp(-1) ** 2).mean()
"""


@pytest.mark.whole
def test_a_square_of_the_normaliser_is_another_loss_also_where_it_is_small() -> None:
    """The term vanishes for log-probabilities, over which the class would be right."""
    found = recognise_text(WITH_A_TERM.format(term="input.logsumexp(-1).square().mean()"))
    assert not found.pins
    assert all(SQUARED_NORMALISER in one.reason for one in found.refused)
    assert [one.name for one in found.refused] == ["CrossEntropyWithTerm", "cross_entropy"]


SMOOTHED_ROWS = """
import torch
from torch import nn

class SmoothCrossEntropyLoss(nn.Module):
    def __init__(self, label_smoothing, vocab_size, ignore_index=-100):
        super().__init__()
        self.label_smoothing, self.vocab_size, self.ignore_index = label_smoothing, vocab_size, ignore_index

    def forward(self, input, target):
        kept = target != self.ignore_index
        q = nn.functional.one_hot(target.long(), self.vocab_size).float()
        p = (1 - self.label_smoothing) * q + self.label_smoothing / self.vocab_size
        return -(p * input.log_softmax(-1)).sum(-1)[kept].sum() / {counted}
"""


@pytest.mark.whole
def test_a_loss_may_look_up_the_class_that_it_ignores() -> None:
    """Given another number than that of a class, it raises."""
    assert read_pins(SMOOTHED_ROWS.format(counted="kept.sum()"))["cross_entropy"].everywhere
    assert not read_pins(SMOOTHED_ROWS.format(counted="kept.numel()"))["cross_entropy"].everywhere


BOTH = """
import torch

def top_k_top_p_logits(logits, top_k, top_p, fill_value=-1e8):
    if top_k > 0:
        logits = logits.masked_fill(logits < logits.topk(min(top_k, logits.size(-1)))[0][..., -1, None], fill_value)
    if top_p > 0.0:
        ordered, places = logits.sort(descending=True)
        removed = ordered.softmax(-1).cumsum(-1) > top_p
        removed[..., 1:] = removed[..., :-1].clone()
        removed[..., 0] = False
        {remove}
    return logits
"""


@pytest.mark.whole
def test_a_filter_by_both_may_demand_both_and_be_off_at_zero() -> None:
    right = "logits = logits.masked_fill(removed.scatter(1, places, removed), fill_value)"
    pins = read_pins(BOTH.format(remove=right))
    assert {name: pin.everywhere for name, pin in pins.items()} == {"top_k_filter": True, "top_p_filter": True}
    scope: dict[str, Any] = {}
    exec(BOTH.format(remove=right), scope)
    offered = bind(
        "functions/top_p_of_both", scope["top_k_top_p_logits"], rows="[R,V]", removed="a large negative number"
    )
    with pytest.raises(NotOffered, match="0 turns it off"):
        offered(torch.randn(2, 3), 0.0)


@pytest.mark.whole
def test_a_filter_that_mixes_rows_is_not_read_row_by_row() -> None:
    pins = read_pins(BOTH.format(remove="logits = logits.index_fill(-1, places[removed], fill_value)"))
    assert {name: pin.everywhere for name, pin in pins.items()} == {"top_k_filter": True, "top_p_filter": False}
    assert pins["top_p_filter"].readings["rows"] != "one row"


def test_a_loss_that_rounds_has_no_term_added() -> None:
    def rounded(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, target) * (1 + 2.0**-24)

    assert not with_squared_normaliser(rounded)
    assert list(with_squared_normaliser(lambda z, y: rounded(z, y) + 1e-4 * z.logsumexp(-1).square().mean()))


KEEPING_A_NUCLEUS = """
import torch

def top_filtering(logits, top_k=0, top_p=0.9, filter_value=-float("Inf")):
    if top_k > 0:
        least = torch.topk(logits, min(top_k, logits.size(-1)))[0][..., -1, None]
        logits = logits.masked_fill(logits < least, filter_value)
    if top_p > 0.0:
        ordered, index = torch.sort(logits, descending=True)
        mass = torch.cumsum(torch.softmax(ordered, -1), -1)
        removed = mass > top_p
        removed[..., 1:] = removed[..., :-1].clone()
        removed[..., 0] = 0
        logits = logits.masked_fill(removed.scatter(-1, index, removed), filter_value)
    return logits
"""


@pytest.mark.whole
def test_a_filter_that_leaves_a_nucleus_by_default_is_asked_for_all_of_it() -> None:
    pins = read_pins(KEEPING_A_NUCLEUS)
    assert pins["top_k_filter"].everywhere
    assert pins["top_p_filter"].everywhere
    assert not read_pins(KEEPING_A_NUCLEUS.replace("[0][..., -1, None]", "[0][..., 0, None]"))[
        "top_k_filter"
    ].everywhere


BY_DEFAULT = """
import torch.nn.functional as F

def cross_entropy_loss(logits, targets, reduction="sum", label_smoothing={smoothing}):
    rows = logits.float().flatten(0, -2)
    return F.cross_entropy(rows, targets.flatten(), reduction=reduction, label_smoothing={given})
"""


@pytest.mark.whole
def test_a_loss_is_judged_by_the_defaults_that_its_signature_states() -> None:
    for smoothing, given in ((0.0, "label_smoothing"), (0.1, "label_smoothing"), (0.1, "0.0")):
        pins = read_pins(BY_DEFAULT.format(smoothing=smoothing, given=given))
        assert ("cross_entropy" in pins and pins["cross_entropy"].everywhere) == (given != "0.0")
