"""Code that is bound as it was recognised gives its results and gradients, by the contract's arguments."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.faulty_forms import form_file
from tests.form_examples import bound_text, form_text, loaded_form, text_file, text_module
from veriformer.verify import bind
from veriformer.verify.forms import cached_calls
from veriformer.verify.forms.afresh import WITHOUT
from veriformer.verify.forms.binding import bound
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.construction import built
from veriformer.verify.forms.form import NotOffered
from veriformer.verify.forms.functions.scheduler_objects import RATES
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.pin import Pin
from veriformer.verify.recognition.adapter import adapter
from veriformer.verify.recognition.candidates import find_candidate
from veriformer.verify.recognition.fitting import PLAIN
from veriformer.verify.recognition.recognise import recognise
from veriformer.verify.recognition.unread import NUMBERS
from veriformer.verify.targets.loading import load
from veriformer.verify.targets.source_files import module_of


def pin_of(file: str, name: str) -> Pin:
    (pin,) = recognise(getattr(loaded_form(file), name)).pins
    return pin


def bound_form(file: str, name: str) -> Callable[..., Any]:
    """Return what a file of `forms/` has by a name, bound as it is recognised."""
    return bound(pin_of(file, name), find_candidate(loaded_form(file), name))


def test_a_network_is_made_as_wide_as_its_weights_are() -> None:
    network = load(f"{form_file('modules')}:PositionwiseFeedForward").operation("feed_forward")
    assert network is not None
    g = torch.Generator().manual_seed(0)
    shapes = ((2, 300), (300, 5), (5,), (5, 300), (300,))
    x, w1, b1, w2, b2 = (torch.randint(-4, 5, shape, generator=g).float() for shape in shapes)  # exact in any order
    assert torch.equal(network(x, w1, b1, w2, b2), torch.relu(x @ w1 + b1) @ w2 + b2)


@pytest.mark.whole
@pytest.mark.parametrize(("name", "surroundings"), [("CausalAttention", None), ("FaultyCausalAttention", WITHOUT)])
def test_what_runs_where_a_library_lacks_something_is_judged_where_it_is_wrong(
    name: str, surroundings: str | None
) -> None:
    pin = pin_of("libraries_of_two_kinds", name)
    assert (pin.operation, pin.everywhere) == ("multi_head_attention", True)
    assert pin.readings.get("surroundings") == surroundings
    assert pin.deviations == (("surroundings",) if surroundings else ())
    attention, fused = (
        bound(one, find_candidate(module_of(form_file("libraries_of_two_kinds")), name))
        for one in (pin, replace(pin, readings={key: x for key, x in pin.readings.items() if key != "surroundings"}))
    )
    x, w = torch.randn(1, 3, 4), torch.eye(4)
    results = [one(x, w, w, w, w, num_heads=2, is_causal=True) for one in (attention, fused)]
    assert nearly_equal(*results) == (surroundings is None)


def test_heads_without_a_projection_are_called_one_by_one_and_projected() -> None:
    head = bind(
        "modules/attention_layer",
        loaded_form("held_otherwise").Head,
        causal="always",
        result="without a projection",
    )
    x, w, w_o = torch.randn(1, 5, 8), torch.randn(3, 8, 4), torch.eye(4)
    both = head(x, *w, w_o, num_heads=2, is_causal=True)
    alone = [head(x, *w[..., part], torch.eye(2), num_heads=1, is_causal=True) for part in (slice(2), slice(2, None))]
    assert torch.equal(both, torch.cat(alone, -1))


def test_a_layer_is_made_for_as_many_positions_as_are_read() -> None:
    attention = bind("modules/attention_layer", loaded_form("built_otherwise").Attention, causal="always")
    x, w = torch.ones(1, 300, 4), torch.ones(4, 4)
    assert attention(x, w, w, w, w, num_heads=2, is_causal=True).shape == x.shape


def test_the_norm_that_clipping_in_place_leaves_out_is_single_for_halves() -> None:
    clip = bind("functions/clip_in_place", loaded_form("called_otherwise").gradient_clipping)
    for dtype, norm in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        assert clip([torch.ones(3, dtype=dtype)], 1.0)[1].dtype == norm


CACHED = "layers_with_caches"


def agrees(name: str, pin: Pin, texts: int = 2) -> bool:
    """Return whether a causal call, or one over a context, gives what the right twin gives at once."""
    draw = torch.Generator().manual_seed(0)
    x, *weights = (torch.randn(*shape, generator=draw) for shape in ((texts, 6, 8), *[(8, 8)] * 4))
    given = {"context": x} if "Filled" in name else {"is_causal": True}
    ours = bound(pin, find_candidate(loaded_form(CACHED), name))(x, *weights, num_heads=2, **given)
    q, k, v = ((x @ w).view(texts, 6, 2, 4).transpose(1, 2) for w in weights[:3])
    y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal="is_causal" in given)
    return nearly_equal(ours, y.transpose(1, 2).flatten(2) @ weights[3])


@pytest.mark.whole
@pytest.mark.parametrize(
    ("name", "wrong", "way"),
    [
        ("FlaggedAttention", "ForgetfulFlaggedAttention", cached_calls.FLAG),
        ("PastAttention", "TopPastAttention", cached_calls.RETURNED),
        ("GivenCacheAttention", "TopGivenCacheAttention", cached_calls.GIVEN),
        ("PlacedAttention", "UnturnedPlacedAttention", cached_calls.STARTS),
        ("AlwaysPlacedAttention", "UnturnedAlwaysPlacedAttention", cached_calls.STARTS),
        ("FilledAttention", "MixedUpFilledAttention", cached_calls.FILLED),
    ],
)
def test_layers_are_called_piece_by_piece(name: str, wrong: str, way: str) -> None:
    pin = pin_of(CACHED, name)
    assert (pin.readings.get("cached"), pin.everywhere, pin.unread) == (way, True, ())
    assert agrees(name, pin)
    assert not agrees(wrong, pin)


def test_another_value_of_an_unread_flag_is_tried_on_small_calls_until_one_is_wrong() -> None:
    sizes = []

    def softmax(x: torch.Tensor, dim: int = -1, pairs: bool = False) -> torch.Tensor:
        s = torch.softmax(x, dim)
        if pairs:
            sizes.append(x.numel())
        return torch.diag_embed(s[..., :4]) if pairs else s

    (pin,) = recognise(softmax).pins
    assert (pin.operation, pin.everywhere, pin.unread) == ("softmax", True, ("pairs",))
    assert 0 < len(sizes) < PLAIN  # in all readings together
    assert max(sizes) <= NUMBERS


@pytest.mark.whole
def test_a_layer_that_always_keeps_is_made_for_as_many_texts_as_are_asked() -> None:
    assert agrees("AlwaysPlacedAttention", pin_of(CACHED, "AlwaysPlacedAttention"), texts=20)


@pytest.mark.whole
def test_a_layer_is_built_causal_by_its_own_flag() -> None:
    pin = pin_of(CACHED, "GivenCacheAttention")
    assert (pin.readings["flag"], pin.readings["causal"], pin.unread) == ("is_causal", "as it is asked", ())
    layer, x = bound_form(CACHED, "GivenCacheAttention"), torch.randn(1, 3, 4)
    both = [layer(x, *[torch.eye(4)] * 4, num_heads=2, is_causal=causal) for causal in (True, False)]
    assert torch.equal(both[0][:, -1], both[1][:, -1])
    assert not torch.equal(both[0][:, 0], both[1][:, 0])


@pytest.mark.parametrize(
    ("name", "wrong", "asked"),
    [
        ("RotaryEmbedding", "FromTheStartRotaryEmbedding", {}),
        ("apply_rotary_emb", "mix_up_rotary_emb", {"pairing": "half"}),
    ],
)
def test_queries_and_keys_are_turned_each_by_its_own(name: str, wrong: str, asked: dict[str, str]) -> None:
    module, pin = loaded_form("rotary_of_files"), pin_of("rotary_of_files", name)
    assert (pin.operation, pin.everywhere) == ("rope", True)
    x = torch.randn(2, 3, 5, 8, generator=torch.Generator().manual_seed(0))
    right, other = (bound(pin, find_candidate(module, one))(x, torch.arange(5), **asked) for one in (name, wrong))
    assert not nearly_equal(other, right)
    assert bool((other == right).all(-1).any())


def test_a_table_that_grows_is_made_short_and_positions_are_given_as_stated_and_left_out() -> None:
    module, pin = loaded_form("rotary_of_files"), pin_of("rotary_of_files", "GrowingRotary")
    assert (pin.operation, pin.everywhere, pin.conventions) == ("rope", True, {})
    assert (pin.readings["rows"], pin.readings["table"]) == ("[B,n]", "grows")
    x = torch.randn(2, 3, 7, 8, generator=torch.Generator().manual_seed(0))
    for positions in (torch.arange(7), torch.arange(1, 8)):
        right, other = (
            bound(pin, find_candidate(module, f"{name}GrowingRotary"))(x, positions) for name in ("", "Tardily")
        )
        assert nearly_equal(other[..., :-1, :], right[..., :-1, :])
        assert not nearly_equal(other, right)


def test_a_table_of_positions_is_built_as_long_as_it_is_asked_for() -> None:
    encoding = bound_text("A table of positions is built as long as it is asked for-0", "sinusoidal_encoding")
    assert [tuple(encoding(n, 2).shape) for n in (7, 6000)] == [(7, 2), (6000, 2)]


def test_a_config_may_set_its_entries_by_their_names() -> None:
    module = text_module("A config may set its entries by their names-0")
    network = built(Candidate("FeedForward", module.FeedForward, module), {"width": 8, "inner": 6})
    assert isinstance(network.args, module.ModelArgs)
    assert (network.w1.in_features, network.w1.out_features) == (8, 6)


def test_a_hidden_layer_that_never_gets_as_wide_as_asked_for_is_not_made_ever_wider(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    recorded = "super().__init__()\n        MADE.append(d_model * d_ff)"
    text = form_text("Matrices of a gated network may be held either way-0")
    file.write_text("MADE = []\n" + text.replace("super().__init__()", recorded))
    module = module_of(file)
    swiglu = bind("modules/swiglu", module.SwiGLU, held="[n_in, n_out]")
    x, into, out = torch.ones(1, 1), torch.ones(1, 300), torch.ones(300, 1)
    with pytest.raises(NotOffered, match="no instance holds 1 × 300 × 1"):
        swiglu(x, into, into, out)
    assert max(module.MADE) < 2**23


@pytest.mark.whole
def test_an_instance_without_a_projection_is_not_offered() -> None:
    attention = bound_text("A norm in front is left out and told-0", "multi_head_attention")
    x, w = torch.ones(1, 2, 4), torch.ones(4, 4)
    with pytest.raises(NotOffered, match="it has 1 linear maps"):
        attention(x, w, w, w, w, num_heads=1)


@pytest.mark.whole
def test_an_adapter_leaves_them_out_as_well(tmp_path: Path) -> None:
    file, written = text_file("A norm in front is left out and told-0"), tmp_path / "adapted.py"
    written.write_text(adapter(str(file), list(recognise(module_of(file)).pins), {}, written))
    adapted = module_of(written)
    x, w, b = torch.ones(2, 4), torch.ones(4, 4), torch.zeros(4)
    assert adapted.feed_forward(x, w, b, w, b).shape == x.shape
    assert callable(adapted.multi_head_attention)


@pytest.mark.parametrize(("d", "inner"), [(40, 8), (8, 40), (5, 5)])
def test_a_gated_network_holds_any_widths_in_whatever_order_its_maps_stand(d: int, inner: int) -> None:
    network = bind("modules/swiglu", loaded_form("told_by_behaviour").GatedFeedForward, gate="first")
    x, w_gate, w_up, w_down = (torch.randn(*shape) for shape in ((3, d), (d, inner), (d, inner), (inner, d)))
    right = (torch.nn.functional.silu(x @ w_gate) * (x @ w_up)) @ w_down
    assert float((network(x, w_gate, w_up, w_down) - right).abs().max()) <= 1e-5 * float(right.abs().max())


@pytest.mark.parametrize("name", ["TokensFirstModel", "CausalOnRequestLM"])
def test_models_are_built_and_called_as_language_models(name: str) -> None:
    model = bind("models/causal_lm", getattr(loaded_form("told_by_behaviour"), name))()
    ids = torch.arange(10).reshape(2, 5)
    assert model(ids).logits.shape == (2, 5, 29)
    assert bool((model(ids[:1]).logits - model(ids).logits[:1]).abs().max() < 1e-5)


def test_a_pin_binds_by_what_was_found_out() -> None:
    module = loaded_form("unknown_names")
    table = bind(
        "functions/sinusoids", module.sinusoidal_table, called_with_rows="num_positions", called_with_columns="d_model"
    )
    assert torch.equal(table(5, 4), module.sinusoidal_table(5, 4))


def test_a_bound_model_gives_logits_loss_and_cache() -> None:
    models = loaded_form("models")
    ids = torch.arange(10).reshape(2, 5)
    model = bind("models/causal_lm", models.GPT, labels="the next tokens", ignored="-1")()
    labels = ids.clone()
    labels[0, 2] = -100
    answer = model(ids[:, :4], labels=labels[:, :4])
    right = torch.nn.functional.cross_entropy(answer.logits[:, :-1].flatten(0, 1), labels[:, 1:4].flatten())
    assert torch.equal(answer.loss, right)
    cached = bind("models/causal_lm", models.CachedTransformer)()
    past = cached(ids[:, :3], use_cache=True).past_key_values
    assert cached(ids[:, 3:], past_key_values=past).logits.shape == (2, 2, 29)


def test_a_schedule_without_an_end_may_warm_up_for_longer_than_it_is_run() -> None:
    form, kind = "functions/noam_of_scheduler", loaded_form("schedules").NoamOpt
    first, second = (bind(form, kind, rate=RATES[0])(step=step, d_model=64, warmup_steps=4000) for step in (1, 2))
    assert second == 2 * first > 0


def test_attention_that_asks_for_its_scale_and_is_causal_by_itself_is_called_as_the_contract_says() -> None:
    def attention(q, k, v, sm_scale, causal=True):  # type: ignore[no-untyped-def]
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal, scale=sm_scale)

    q, k, v = (torch.randn(1, 2, 3, 4, dtype=torch.float64) for _ in range(3))
    called = bind("functions/qkv_attention", attention)
    plain = torch.nn.functional.scaled_dot_product_attention
    assert called(q, k, v).equal(plain(q, k, v))
    assert called(q, k, v, is_causal=True, scale=0.3).equal(plain(q, k, v, is_causal=True, scale=0.3))


@pytest.mark.whole
def test_the_options_of_a_loss_may_be_its_constructors() -> None:
    kind = text_module("The options of a loss may be its constructors-0").CrossEntropyLoss
    offered = inspect.signature(bind("functions/cross_entropy", kind)).parameters
    assert list(offered) == ["logits", "target", "ignore_index", "reduction"]


def test_log_probabilities_of_all_classes_have_gradients_by_their_targets() -> None:
    def log_softmax(logits: torch.Tensor, dim: int = -1) -> torch.Tensor:
        return torch.log_softmax(logits, dim)

    logits = torch.randn(3, 4, requires_grad=True)
    loss = bind("functions/log_softmax", log_softmax)
    (gradient,) = torch.autograd.grad(loss(logits, torch.tensor([0, 1, 3])), logits)
    assert bool((gradient != 0).all())


def test_a_filter_by_both_is_not_offered_at_zero_where_that_turns_it_off() -> None:
    both = text_module("A filter by both may demand both and be off at zero-0").top_k_top_p_logits
    offered = bind("functions/top_p_of_both", both, rows="[R,V]", removed="a large negative number")
    with pytest.raises(NotOffered, match="0 turns it off"):
        offered(torch.randn(2, 3), 0.0)


def test_a_function_that_is_always_causal_is_judged_as_such() -> None:
    target = load(str(text_file("A function that is always causal is judged as such-0")))
    (pin,) = target.recognised["recognised"]
    assert pin["everywhere"]
    assert pin["readings"]["causal"] == "always"
    assert not pin["deviations"]
    assert target.refusals("attention").of({"is_causal": False}, "fp32")
    assert not target.refusals("attention").of({"is_causal": True}, "fp32")
    attention = target.operation("attention")
    assert attention is not None
    q = torch.randn(1, 1, 3, 2, generator=torch.Generator().manual_seed(0))
    assert torch.equal(attention(q, q, q, is_causal=True)[0, 0, 0], q[0, 0, 0])


@pytest.mark.whole
@pytest.mark.parametrize("more", ["", "import torch\n"])
def test_functions_over_arrays_are_never_called_with_tensors_because_of_their_names(more: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(more + form_text("Functions over arrays are never called with tensors because of their names-0"))
    target = load(str(file))
    pins = {pin["operation"]: pin for pin in target.recognised["recognised"]}
    assert not target.recognised.get("by_name")
    assert pins.keys() == {"softmax", "attention"}
    assert all(pin["everywhere"] for pin in pins.values())
    assert pins["attention"]["readings"]["mask"] == "additive"


def test_a_function_over_tensors_may_use_numpy_for_its_numbers(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("import numpy as np\nimport torch\n\ndef silu(x):\n    return x / (1 + (-x).exp() * np.e ** 0)\n")
    assert not load(str(file)).recognised
