"""Weights, sizes and parts that are held, and calls that are made, in other ways are recognised for what they are."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import torch

from veriformer.verify import bind
from veriformer.verify.forms.afresh import WITHOUT
from veriformer.verify.forms.binding import bound
from veriformer.verify.forms.interleaving import nearly_equal
from veriformer.verify.forms.pin import Pin
from veriformer.verify.forms.size_names import size_of
from veriformer.verify.recognition.candidates import resolved
from veriformer.verify.recognition.recognise import Recognised, recognise
from veriformer.verify.targets.locating import resolve
from veriformer.verify.targets.source_files import module_of

HERE = Path(__file__).parent / "forms"

READ = {
    ("held_otherwise", "GatedMLP"): ("swiglu", {}),
    ("held_otherwise", "ConfiguredAttention"): ("multi_head_attention", {}),
    ("held_otherwise", "MLP"): ("feed_forward", {"held": "[n_out, n_in]"}),
    ("held_otherwise", "Attention"): ("multi_head_attention", {"causal": "always"}),
    ("held_otherwise", "FusedAttention"): ("multi_head_attention", {"mask": "boolean", "batch": "[B,n,d]"}),
    ("held_otherwise", "HeadAttention"): ("multi_head_attention", {"head_size": "the number of heads"}),
    ("held_otherwise", "Head"): ("multi_head_attention", {"causal": "always", "result": "without a projection"}),
    ("held_otherwise", "HeadsAlone"): ("multi_head_attention", {"result": "without a projection"}),
    ("held_otherwise", "Rotary"): ("rope", {}),
    ("held_otherwise", "EncoderLayer"): ("transformer_block", {"norm": "pre"}),
    ("held_otherwise", "HeadByHeadBlock"): ("transformer_block", {"joined": "head by head"}),
    ("held_otherwise", "Unembed"): ("lm_head", {}),
    ("configured", "FeedForward"): ("feed_forward", {}),
    ("configured", "MultiHeadAttention"): ("multi_head_attention", {}),
    ("sizes_of_module", "MultiHeadAttention"): ("multi_head_attention", {"causal": "always"}),
    ("sizes_of_module", "FeedForward"): ("feed_forward", {}),
    ("sizes_of_module", "SmallLanguageModel"): ("causal_lm", {}),
    ("built_otherwise", "Attention"): ("multi_head_attention", {"causal": "always"}),
    ("built_otherwise", "MLP"): ("feed_forward", {}),
    ("built_otherwise", "PostNormBlock"): ("transformer_block", {"norm": "post", "norms": "as they are registered"}),
    ("built_otherwise", "BlockOfHeads"): ("transformer_block", {"norm": "pre"}),
    ("built_otherwise", "SmallLMHeadModel"): ("causal_lm", {"labels": "the next tokens", "ignored": "-1"}),
    ("built_otherwise", "UnbiasedMLP"): ("feed_forward", {}),
    ("built_otherwise", "TiedLMHead"): ("lm_head", {}),
    ("built_otherwise", "LayerNorm"): ("layer_norm", {"weight": "as it is"}),
    ("built_otherwise", "ForgetfulAttention"): ("multi_head_attention", {"causal": "always"}),
    ("built_otherwise", "TurnedByPairsAttention"): ("multi_head_attention", {"mask": "boolean"}),
    ("built_otherwise", "apply_rope"): ("rope", {"layout": "[B,n,H,d]"}),
    ("built_otherwise", "Swish"): ("silu", {}),
    ("built_otherwise", "LabelSmoothCE"): ("cross_entropy", {"spread": "all classes"}),
    ("built_otherwise", "SmoothedCEOfSequences"): ("cross_entropy", {"spread": "all classes"}),
    ("built_otherwise", "CosineWarmupRestarts"): ("warmup_cosine", {}),
    ("built_otherwise", "NoamFromTheStart"): ("noam", {"rate": "of the next step"}),
    ("built_otherwise", "ExpandingBlock"): ("transformer_block", {"norm": "pre"}),
    ("built_otherwise", "Encoder"): ("bpe_encode", {}),
    ("held_otherwise", "TurningAttention"): ("multi_head_attention", {}),
    ("called_otherwise", "apply_rotary_emb"): ("rope", {"layout": "[B,n,H,d]"}),
    ("called_otherwise", "get_cosine_lr"): ("warmup_cosine", {}),
    ("called_otherwise", "gradient_clipping"): ("clip_grad_norm", {}),
    ("called_otherwise", "ScheduledAdam"): ("noam", {}),
    ("called_otherwise", "SiLU"): ("silu", {}),
    ("called_otherwise", "SequenceCrossEntropy"): ("cross_entropy", {"shape": "sequences"}),
    ("called_otherwise", "SGDDecay"): ("optimizer", {}),
}
ANOTHER = {
    ("built_otherwise", "NoisyLM"): "two calls with the same tokens",
    ("held_otherwise", "DecoderLayer"): "'encoder_output' as well",
    ("held_otherwise", "Generator"): "logarithm of the softmax",
    ("called_otherwise", "SummedCrossEntropyLoss"): "the sum of its terms but those of class 0",
}


@cache
def found(file: str, name: str) -> Recognised:
    return recognise(getattr(resolve(str(HERE / f"{file}.py"))[0], name))


@pytest.mark.whole
@pytest.mark.parametrize(("file", "name"), READ)
def test_what_is_held_or_called_otherwise_is_recognised_as_what_it_is(file: str, name: str) -> None:
    operation, readings = READ[file, name]
    (pin,) = found(file, name).pins
    assert isinstance(pin, Pin)
    assert (pin.operation, pin.everywhere, pin.conventions) == (operation, True, {}), pin
    assert {key: pin.readings[key] for key in readings} == readings


@pytest.mark.parametrize(("name", "is_it"), [("get_long_cosine_lr", "warmup_cosine"), ("SteepScheduledAdam", "noam")])
def test_a_schedule_that_is_known_by_what_it_takes_may_be_wrong(name: str, is_it: str) -> None:
    (pin,) = found("called_otherwise", name).pins
    assert (pin.operation, pin.everywhere) == (is_it, False)


@pytest.mark.parametrize(("file", "name"), ANOTHER)
def test_what_only_looks_like_an_operation_is_refused_with_the_reason(file: str, name: str) -> None:
    assert not found(file, name).pins
    assert ANOTHER[file, name] in found(file, name).refused[0].reason


@pytest.mark.parametrize(("name", "told"), [("OutputLayer", ("its bias is held at 0",)), ("Unembed", ())])
def test_a_last_layer_whose_bias_is_held_says_so(name: str, told: tuple[str, ...]) -> None:
    (pin,) = found("held_otherwise", name).pins
    assert (pin.operation, pin.everywhere, pin.told) == ("lm_head", True, told)


def test_a_head_by_itself_is_judged_by_the_scale_of_its_own_width() -> None:
    (pin,) = found("held_otherwise", "HeadScaledByWidth").pins
    assert (pin.operation, pin.everywhere) == ("multi_head_attention", False)


@pytest.mark.whole
@pytest.mark.parametrize(("name", "surroundings"), [("CausalAttention", None), ("FaultyCausalAttention", WITHOUT)])
def test_what_runs_where_a_library_lacks_something_is_judged_where_it_is_wrong(
    name: str, surroundings: str | None
) -> None:
    (pin,) = found("libraries_of_two_kinds", name).pins
    assert (pin.operation, pin.everywhere) == ("multi_head_attention", True)
    assert pin.readings.get("surroundings") == surroundings
    assert pin.deviations == (("surroundings",) if surroundings else ())
    attention, fused = (
        bound(one, resolved(module_of(HERE / "libraries_of_two_kinds.py"), name))
        for one in (pin, replace(pin, readings={key: x for key, x in pin.readings.items() if key != "surroundings"}))
    )
    x, w = torch.randn(1, 3, 4), torch.eye(4)
    results = [one(x, w, w, w, w, num_heads=2, is_causal=True) for one in (attention, fused)]
    assert nearly_equal(*results) == (surroundings is None)


def test_heads_without_a_projection_are_called_one_by_one_and_projected() -> None:
    head = bind(
        "modules/attention_layer",
        module_of(HERE / "held_otherwise.py").Head,
        causal="always",
        result="without a projection",
    )
    x, w, w_o = torch.randn(1, 5, 8), torch.randn(3, 8, 4), torch.eye(4)
    both = head(x, *w, w_o, num_heads=2, is_causal=True)
    alone = [head(x, *w[..., part], torch.eye(2), num_heads=1, is_causal=True) for part in (slice(2), slice(2, None))]
    assert torch.equal(both, torch.cat(alone, -1))


def test_a_layer_is_made_for_as_many_positions_as_are_read() -> None:
    attention = bind("modules/attention_layer", module_of(HERE / "built_otherwise.py").Attention, causal="always")
    x, w = torch.ones(1, 300, 4), torch.ones(4, 4)
    assert attention(x, w, w, w, w, num_heads=2, is_causal=True).shape == x.shape


def test_the_norm_that_clipping_in_place_leaves_out_is_single_for_halves() -> None:
    clip = bind("functions/clip_in_place", module_of(HERE / "called_otherwise.py").gradient_clipping)
    for dtype, norm in ((torch.bfloat16, torch.float32), (torch.float64, torch.float64)):
        assert clip([torch.ones(3, dtype=dtype)], 1.0)[1].dtype == norm


@pytest.mark.whole
def test_a_filter_of_one_row_that_leaves_a_large_negative_number_is_told_as_such() -> None:
    (pin,) = found("built_otherwise", "top_k_logits").pins
    assert (pin.operation, pin.everywhere, pin.deviations) == ("top_k_filter", True, ("rows", "removed"))


def test_another_function_that_is_called_softmax_as_well_is_none() -> None:
    assert not found("built_otherwise", "taylor_softmax").pins


def test_sizes_are_known_by_the_words_of_their_names() -> None:
    sizes = {"dim_model": "width", "d_mlp": "inner", "n_heads": "heads", "d_head": "head_dim", "dim_keys": "head_dim"}
    sizes |= {
        "n_kv_heads": "kv_heads",
        "src_vocab_len": "vocabulary",
        "max_ctx_len": "length",
        "number_of_layers": "layers",
    }
    assert {name: size_of(name) for name in sizes} == sizes
    assert [size_of(name) for name in ("key_size", "label_size", "word", "model")] == ["", "", "", ""]
    assert size_of("hidden_dim", ("n_head", "feed_forward_dim")) == "width"
    assert size_of("hidden_dim", ("dim_model",)) == "inner"
    assert size_of("n_local_heads", ("dim", "n_head")) == "kv_heads"
    assert size_of("n_local_heads", ("dim",)) == "heads"


def test_a_neighbour_that_cannot_be_imported_gives_its_definitions(tmp_path: Path) -> None:
    """The neighbour stands in a folder that is no package, asks for a file that is not there, and for another
    neighbour."""
    folder = tmp_path / "code"
    folder.mkdir()
    (folder / "tools.py").write_text(
        "VOCABULARY = open('vocabulary.txt').read()\n\ndef softmax_of(x, dim):\n    return x.softmax(dim)\n", "utf-8"
    )
    (folder / "layers.py").write_text(
        "from code.tools import softmax_of\n\ndef softmax(z, dim=-1):\n    return softmax_of(z, dim)\n\n"
        "for _ in range(1):\n    pass\n",
        "utf-8",
    )
    module, _ = resolve(str(folder / "layers.py"))
    assert callable(vars(module)["softmax_of"])


@pytest.mark.whole
def test_a_known_fault_tells_whose_weights_are_whose_where_no_reading_is_right() -> None:
    (pin,) = found("held_otherwise_faulty", "MultiHeadAttention").pins
    assert (pin.operation, pin.everywhere, pin.readings["joined"]) == ("multi_head_attention", False, "head by head")
    assert "it gives what a known fault gives" in pin.told[0]
