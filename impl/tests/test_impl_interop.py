"""Models of transformers, randomly initialised: weights there and back, logits to the last digits of float64."""

import copy

import pytest
import torch
from torch import nn

from tests.noise_floor import judge_alike, spread
from veriformer.impl.interop import from_transformers, to_transformers, transformers_state
from veriformer.impl.models import Decoder, gpt

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore")  # another library's warnings about itself

V = 37
GPT2 = {"vocab_size": V, "n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 32}
SIZES = {"vocab_size": V, "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 20}
T5 = {"vocab_size": V, "d_model": 24, "d_kv": 5, "d_ff": 20, "num_layers": 2, "num_heads": 4, "pad_token_id": 0}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}
PEERS = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", GPT2),
    "gpt2, untied, erf": (
        "GPT2LMHeadModel",
        "GPT2Config",
        GPT2 | {"tie_word_embeddings": False, "activation_function": "gelu"},
    ),
    "llama": ("LlamaForCausalLM", "LlamaConfig", SIZES | {"num_key_value_heads": 2}),
    "llama, tied, scaled": (
        "LlamaForCausalLM",
        "LlamaConfig",
        SIZES | {"tie_word_embeddings": True, "rope_parameters": LINEAR, "attention_bias": True, "mlp_bias": True},
    ),
    "bert": ("BertForMaskedLM", "BertConfig", SIZES | {"max_position_embeddings": 32}),
    "t5": ("T5ForConditionalGeneration", "T5Config", T5 | {"relative_attention_max_distance": 20}),
    "t5, gated": (
        "T5ForConditionalGeneration",
        "T5Config",
        T5 | {"feed_forward_proj": "gated-gelu", "num_decoder_layers": 3, "tie_word_embeddings": False},
    ),
}
peers = pytest.mark.parametrize("name", PEERS)
IDS = torch.randint(1, V, (2, 23), generator=torch.Generator().manual_seed(0))


class Rotary(nn.Module):
    """Their angles in float64: they form them in float32 whatever the dtype of the model."""

    def __init__(self, base, scale, d):
        super().__init__()
        self.theta = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d) / scale

    def forward(self, x, position_ids):
        angle = position_ids[..., None].double() * self.theta
        return tuple(torch.cat((f, f), -1) for f in (angle.cos(), angle.sin()))


def lift(peer):
    """Let norms, angles and softmax of a peer have the digits of float64, which they round to float32."""
    for parent in list(peer.modules()):
        for name, child in list(parent.named_children()):
            if type(child).__name__ in ("LlamaRMSNorm", "T5LayerNorm"):
                precise = nn.RMSNorm(child.weight.shape, eps=child.variance_epsilon, dtype=torch.float64)
                precise.weight = child.weight
                setattr(parent, name, precise)
            elif type(child).__name__ == "LlamaRotaryEmbedding":
                rope = peer.config.rope_parameters
                setattr(parent, name, Rotary(rope["rope_theta"], rope.get("factor", 1.0), peer.config.head_dim))
    return peer


def build(name):
    kind, config, options = PEERS[name]
    torch.manual_seed(1)
    c = getattr(transformers, config)(**options, attn_implementation="sdpa")
    peer = getattr(transformers, kind)(c).double().eval()
    for p in peer.parameters():  # as they come, their weights are too small for a fault to be felt
        p.data += 0.2 * torch.randn_like(p)
    return lift(peer)


def theirs(peer, ids, mask=None):
    more = {"decoder_input_ids": IDS[:, :11]} if peer.config.model_type == "t5" else {}
    with torch.no_grad():
        return peer(input_ids=ids, attention_mask=mask, **more).logits


def ours(model, ids, mask=None):
    more = {"decoder_ids": IDS[:, :11]} if hasattr(model, "decoder") else {}
    with torch.no_grad():
        return model(ids, mask, **more).logits


@pytest.mark.whole
@peers
def test_logits_agree_to_what_rounding_explains(name):
    peer = build(name)
    model = from_transformers(peer)
    assert not model.training
    sigma = spread(model, lambda: ours(model, IDS))
    judge_alike(ours(model, IDS), theirs(peer, IDS), sigma)
    mask = torch.ones_like(IDS)
    mask[1, -6:] = 0
    real = mask.bool() if sigma.shape[1] == IDS.shape[1] else torch.ones(2, 11, dtype=torch.bool)
    want = theirs(peer, IDS, mask)[real]
    judge_alike(ours(model, IDS, mask)[real], want, spread(model, lambda: ours(model, IDS, mask)[real]))


@peers
def test_weights_come_back_bit_for_bit_and_stay_tied(name):
    peer, other = build(name), build(name)
    model = from_transformers(peer)
    for p in other.parameters():
        p.data.zero_()
    to_transformers(model, other)
    before, after = peer.state_dict(), other.state_dict()
    assert set(before) == set(after)
    assert all(torch.equal(before[key], after[key]) for key in before)

    def ties(module):
        state = module.state_dict()
        return {(a, b) for a in state for b in state if state[a].data_ptr() == state[b].data_ptr()}

    assert ties(other) == ties(peer)
    again = from_transformers(other)
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(), strict=True))
    assert model.config.tied == (not any(key == "head.weight" for key in model.state_dict()))


def test_a_copy_is_a_copy():
    peer = build("gpt2")
    model = from_transformers(peer)
    before = copy.deepcopy(model.state_dict())
    for p in peer.parameters():
        p.data.zero_()
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())


def test_buckets_are_theirs_at_every_distance():
    from transformers.models.t5.modeling_t5 import T5Attention

    from veriformer.impl import t5_relative_position_bucket

    r = torch.arange(-300, 301)
    for bidirectional in (True, False):
        want = T5Attention._relative_position_bucket(r, bidirectional, 32, 128)
        assert torch.equal(t5_relative_position_bucket(r, bidirectional=bidirectional), want)


def test_what_has_no_counterpart_is_refused():
    def refused(config, match):
        peer = nn.Linear(1, 1)
        peer.config = config
        with pytest.raises(ValueError, match=match):
            from_transformers(peer)

    refused(transformers.GPTNeoXConfig(), "model_type: expected")
    refused(transformers.GPT2Config(**GPT2, scale_attn_by_inverse_layer_idx=True), "config: expected")
    refused(transformers.LlamaConfig(**SIZES, attention_bias=True), "config: expected")
    refused(transformers.LlamaConfig(**SIZES, hidden_act="gelu"), "hidden_act: expected")
    refused(transformers.BertConfig(**SIZES, hidden_act="relu"), "hidden_act: expected")
    refused(transformers.T5Config(**T5, feed_forward_proj="gated-relu"), "feed_forward_proj: expected")
    rope = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 10000.0}
    refused(transformers.LlamaConfig(**SIZES, rope_parameters=rope), "rope_type: expected")
    with pytest.raises(ValueError, match="model: expected"):
        transformers_state(Decoder(gpt(vocab_size=8, d_model=8, num_layers=1, num_heads=2, bias=False)), "gpt2")
    with pytest.raises(TypeError, match="model: expected"):
        transformers_state(Decoder(gpt(vocab_size=8, d_model=8, num_layers=1, num_heads=2)), "bert")
