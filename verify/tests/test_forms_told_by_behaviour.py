"""The positions that a layer reads say whether it is causal and how its masks are given; names and defaults say the
rest."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from veriformer.verify import bind
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.causality import CAUSALITY, LENGTH, causality_of
from veriformer.verify.forms.construction import default_elsewhere
from veriformer.verify.forms.conventions import MASKS
from veriformer.verify.forms.form import Fit, Match
from veriformer.verify.forms.functions.qkv_attention import SCALES
from veriformer.verify.forms.heads import FUSED
from veriformer.verify.forms.signatures import by_words
from veriformer.verify.forms.size_names import size_of
from veriformer.verify.recognition import by_behaviour
from veriformer.verify.recognition.nearest import _is_tied
from veriformer.verify.recognition.recognise import Recognised, recognise
from veriformer.verify.targets.source_files import module_of

FILE = Path(__file__).parent / "forms" / "told_by_behaviour.py"


def found(name: str) -> Recognised:
    return recognise(module_of(FILE), among=[name])


@pytest.mark.parametrize(
    ("sees", "tenable"),
    [
        (torch.ones(LENGTH, LENGTH), CAUSALITY[:1]),
        (torch.ones(LENGTH, LENGTH).tril(), CAUSALITY[1:]),
        (torch.ones(LENGTH, LENGTH).tril(1), CAUSALITY[1:]),
        (torch.ones(LENGTH, LENGTH).tril(-1), CAUSALITY[1:]),
        (torch.eye(LENGTH), CAUSALITY),
        (torch.full((LENGTH, LENGTH), torch.nan), CAUSALITY),
    ],
)
def test_which_positions_are_read_says_whether_a_layer_is_causal(sees: Tensor, tenable: tuple[str, ...]) -> None:
    assert causality_of(lambda x: sees @ x, 4) == tenable


def test_a_layer_that_refuses_may_be_either() -> None:
    def refuses(x: Tensor) -> Tensor:
        raise ValueError(f"expected a mask with {tuple(x.shape)}")

    assert causality_of(refuses, 4) == CAUSALITY


@pytest.mark.parametrize(
    ("name", "how", "right"),
    [
        ("Transformer", "boolean, [B,1,n,n]", True),
        ("HidingTransformer", "inverted, [B,1,n,n]", True),
        ("TransformerThatLooksAhead", "boolean, [B,1,n,n]", False),
    ],
)
def test_masks_that_are_demanded_are_given_as_they_hide(name: str, how: str, right: bool) -> None:
    (pin,) = found(name).pins
    assert (pin.operation, pin.everywhere) == ("causal_lm", right)
    assert f"its masks are given as {how}" in pin.told


@pytest.mark.whole
def test_parts_and_what_has_a_default_elsewhere_are_filled_in() -> None:
    (pin,) = found("EncoderLayer").pins
    assert (pin.operation, pin.everywhere) == ("transformer_block", True)
    assert not any("show_weights" in told for told in pin.told)  # nothing had to be found out


def test_a_default_is_taken_from_elsewhere_where_there_is_one() -> None:
    module = module_of(FILE)
    candidate = Candidate("Attention", module.Attention, module)
    assert default_elsewhere(candidate, "show_weights") is False
    assert default_elsewhere(candidate, "d_model") is inspect.Parameter.empty


def test_one_map_may_have_its_entries_further_out() -> None:
    (pin,) = found("MultiHeadSelfAttention").pins
    assert (pin.operation, pin.everywhere) == ("multi_head_attention", True)
    assert pin.readings["joined"] == "[d,3,H]" in FUSED
    assert pin.readings["causal"] == CAUSALITY[0]


@pytest.mark.parametrize(
    ("name", "size"),
    [
        *(("trg_vocab", "vocabulary"), ("enc_max_len", "length"), ("decoder_layers", "layers"), ("src", "")),
        *(("n_local_heads", "heads"), ("n_local_kv_heads", "kv_heads"), ("local", "")),
    ],
)
def test_sizes_of_one_side_are_known_by_the_rest_of_their_name(name: str, size: str) -> None:
    assert size_of(name) == size


def test_only_so_many_combinations_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_behaviour, "TRIED", 0)
    unknown = module_of(FILE.with_name("unknown_names.py"))
    assert not recognise(unknown, among=["FeedForward"]).pins


@pytest.mark.parametrize(("d", "inner"), [(40, 8), (8, 40), (5, 5)])
def test_a_gated_network_holds_any_widths_in_whatever_order_its_maps_stand(d: int, inner: int) -> None:
    network = bind("modules/swiglu", module_of(FILE).GatedFeedForward, gate="first")
    x, w_gate, w_up, w_down = (torch.randn(*shape) for shape in ((3, d), (d, inner), (d, inner), (inner, d)))
    right = (torch.nn.functional.silu(x @ w_gate) * (x @ w_up)) @ w_down
    assert float((network(x, w_gate, w_up, w_down) - right).abs().max()) <= 1e-5 * float(right.abs().max())


@pytest.mark.whole
def test_a_scale_that_is_a_number_by_default_is_left_to_callers() -> None:
    (pin,) = found("dot_product_attention").pins
    assert (pin.operation, pin.everywhere) == ("attention", True)
    assert pin.readings["scale"] == SCALES[1]
    assert "scale" in pin.deviations


@pytest.mark.whole
def test_tensors_are_known_by_a_word_of_their_names() -> None:
    (pin,) = found("MultiHeadAttention").pins
    assert (pin.operation, pin.everywhere) == ("multi_head_attention", True)
    named = inspect.signature(lambda query_states, k_len, key_states, value_states, value_scale: None).parameters
    usual = {"q": ("q", "query"), "k": ("k", "key"), "v": ("value",)}
    assert {role: names[-1] for role, names in by_words(named, usual).items()} == {
        "q": "query_states",
        "k": "key_states",
        "v": "value_states",
    }


@pytest.mark.parametrize(
    ("name", "told"),
    [("TokensFirstModel", "tokens are given as [n, B]"), ("CausalOnRequestLM", "built with causal = True")],
)
def test_models_are_built_and_called_as_language_models(name: str, told: str) -> None:
    (pin,) = found(name).pins
    assert (pin.operation, pin.everywhere) == ("causal_lm", True)
    assert told in pin.told
    model = bind("models/causal_lm", getattr(module_of(FILE), name))()
    ids = torch.arange(10).reshape(2, 5)
    assert model(ids).logits.shape == (2, 5, 29)
    assert bool((model(ids[:1]).logits - model(ids).logits[:1]).abs().max() < 1e-5)


@pytest.mark.parametrize(("right", "tied"), [(("boolean", "0/1"), False), (("boolean", "inverted"), True)])
def test_a_mask_that_is_right_by_opposite_readings_is_not_told(right: tuple[str, ...], tied: bool) -> None:
    whole, half = (Fit(8, 7, held, True, 1.0, 1.0) for held in (7, 3))
    match = Match(True, {"mask": MASKS})

    def tried(choice: tuple[dict[str, str], dict[str, str]], every: int) -> Any:
        return SimpleNamespace(fit=whole if choice[1]["mask"] in right else half)

    best: Any = SimpleNamespace(readings={"mask": "boolean"}, match=match, conventions={}, fit=whole)
    assert _is_tied(best, "mask", tried) is tied
