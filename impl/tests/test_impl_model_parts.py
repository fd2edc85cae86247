"""Parts around the decoder: config, first weights, dropout, checkpointing, compilation, encoder, encoder–decoder."""

import dataclasses

import pytest
import torch

from tests.model_configs import DECODERS, SIZES
from tests.noise_floor import judge_alike, spread
from veriformer.impl.models import Decoder, Encoder, EncoderDecoder, ModelConfig, bert, gpt, llama, t5

compiles = pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
SMALL = {"vocab_size": 8, "d_model": 8, "num_layers": 1, "num_heads": 2}
REFUSED = [
    ("vocab_size", 0, ValueError),
    ("d_model", 8.0, TypeError),
    ("num_heads", 3, ValueError),
    ("num_heads", True, TypeError),
    ("num_kv_heads", 3, ValueError),
    ("window", 0, ValueError),
    ("softcap", 0.0, ValueError),
    ("dropout", 1.5, ValueError),
    ("position", "rotary", ValueError),
    ("norm", "batch", ValueError),
    ("norm_placement", "middle", ValueError),
    ("activation", "swish", ValueError),
    ("init", "zeros", ValueError),
    ("attention", "flash", ValueError),
    ("rope_pairing", "quarter", ValueError),
    ("rope_scaling", ("linear", 0.0), ValueError),
    ("rope_scaling", ("yarn", 2.0), ValueError),
    ("rope_scaling", 2.0, TypeError),
    ("tied", 1, TypeError),
    ("eps", -1.0, ValueError),
]


@pytest.mark.parametrize(("field", "value", "error"), REFUSED, ids=str)
def test_configs_that_make_no_model(field, value, error):
    with pytest.raises(error, match=f"^{field}: expected .*; "):
        ModelConfig(**{**SMALL, field: value})


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"position": "rope", "head_dim": 3}, "head_dim"),
        ({"position": "rope", "head_dim": 2, "rope_scaling": ("ntk", 2.0)}, "head_dim"),
        ({"position": "sinusoidal", "d_model": 7, "head_dim": 4}, "d_model"),
        ({"num_experts": 4, "activation": "swiglu"}, "activation"),
        ({"num_experts": 1}, "experts_per_token"),
        ({"position": "t5", "t5_buckets": 7}, "t5_buckets"),
    ],
    ids=str,
)
def test_combinations_that_make_no_model(changes, field):
    with pytest.raises(ValueError, match=f"^{field}: expected"):
        ModelConfig(**{**SMALL, **changes})


def test_config_is_flat_frozen_and_replaceable():
    config = ModelConfig(**SMALL)
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.d_model = 16
    assert (config.d_k, config.kv_heads, config.d_ff) == (4, 2, 32)
    assert config.replace(d_model=12, activation="swiglu").d_ff == 32
    with pytest.raises(ValueError, match="num_heads"):
        config.replace(d_model=9)


IDS = torch.randint(0, 37, (2, 9), generator=torch.Generator().manual_seed(1))
CALLS = [
    ((IDS[0],), {}, "ids"),
    ((IDS.float(),), {}, "ids"),
    ((IDS[:, :0],), {}, "ids"),
    ((IDS - 40,), {}, "ids"),
    ((IDS + 37,), {}, "ids"),
    ((IDS.repeat(1, 4),), {}, "ids"),
    ((IDS, torch.ones(2, 8)), {}, "attention_mask"),
    ((IDS, [1] * 9), {}, "attention_mask"),
    ((IDS,), {"documents": torch.zeros(2, 3)}, "documents"),
    ((IDS, torch.ones(2, 9)), {"documents": torch.zeros(2, 9)}, "documents"),
]


@pytest.mark.parametrize(("arguments", "options", "name"), CALLS)
def test_calls_that_do_not_fit(arguments, options, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name}: expected"):
        Decoder(DECODERS["gpt"])(*arguments, **options)


def test_first_weights_have_the_size_that_is_asked_for():
    torch.manual_seed(0)
    sizes = {"vocab_size": 64, "d_model": 256, "num_layers": 8, "num_heads": 4}
    for init, std in (("gpt2", 0.02), ("xavier", (2 / 512) ** 0.5)):
        model = Decoder(ModelConfig(**sizes, init=init, qk_gain=0.25))
        block = model.stack.blocks[3]
        q, k, v = block.attention.qkv.weight.detach().split(256, 1)
        branch = std / 4 if init == "gpt2" else (2 / 512) ** 0.5  # 16 branches feed the stream
        for weight, want in ((q, std / 4), (k, std / 4), (v, std), (block.attention.out.weight, branch)):
            # The variance of n normal numbers is spread by √(2/n): six of those are one case in a billion.
            assert abs(float(weight.detach().var()) / want**2 - 1) < 6 * (2 / weight.numel()) ** 0.5
        assert not block.attention.qkv.bias.any()
        assert float(model.embedding.tokens.weight.detach().std()) < 0.021


def test_checkpointing_keeps_the_dropout_masks():
    config = DECODERS["llama"].replace(dropout=0.3, attention_dropout=0.3)
    torch.manual_seed(2)
    plain = Decoder(config).double().train()
    lean = Decoder(config.replace(activation_checkpointing=True)).double().train()
    lean.load_state_dict(plain.state_dict())
    grads = []
    for model in (plain, lean, plain):
        torch.manual_seed(4 if len(grads) < 2 else 5)
        loss = model(IDS).logits.square().sum()
        grads.append(torch.autograd.grad(loss, list(model.parameters())))
    assert all(torch.equal(a, b) for a, b in zip(*grads[:2], strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(grads[0], grads[2], strict=True))
    assert torch.equal(plain.eval()(IDS).logits, plain(IDS).logits)


@pytest.mark.whole
@compiles
@pytest.mark.parametrize("kind", ["gpt", "t5 bias", "window, alibi, grouped, soft-cap", "experts"])
def test_compiles_to_one_graph_forward_and_backward(kind):
    torch.compiler.reset()
    model = Decoder(DECODERS[kind].replace(dropout=0.1)).train()
    compiled, results = torch.compile(model, fullgraph=True, backend="aot_eager"), []
    for run in (model, compiled):
        torch.manual_seed(0)
        loss = run(IDS, torch.ones_like(IDS)).logits.square().mean()
        results.append((loss, *torch.autograd.grad(loss, list(model.parameters()))))
    assert all(torch.equal(eager, fast) for eager, fast in zip(*results, strict=True))


@pytest.mark.whole
@compiles
@torch.no_grad()
@pytest.mark.parametrize("kind", ["gpt", "window", "experts"])
def test_decode_compiles_to_one_graph_that_serves_every_length(kind):
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    model = Decoder(DECODERS[kind]).eval()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    edges = ((0, 9), *((i, i + 1) for i in range(6)))

    def read(run):
        kv_cache = model.make_kv_cache(2, 30)
        return torch.cat([run(IDS[:, a:b], past_key_values=kv_cache).logits for a, b in edges], 1)

    judge_alike(read(compiled), read(model), spread(model, lambda: read(model)))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 4


def filled(model):
    torch.manual_seed(7)
    for p in model.double().eval().parameters():
        p.data += 0.1 * torch.randn_like(p)
    return model


@torch.no_grad()
@pytest.mark.parametrize(
    "config",
    [
        bert(**SIZES),
        bert(**SIZES, norm_placement="pre"),
        llama(**SIZES),
        ModelConfig(**SIZES, position="t5"),
        gpt(**SIZES),
    ],
    ids=["bert", "pre-norm", "rope", "t5 bias", "tanh"],
)
def test_encoder_sees_both_sides_but_no_padding_and_no_other_document(config):
    model = filled(Encoder(config))
    want = model(IDS).logits
    sigma = spread(model, lambda: model(IDS).logits)
    mask = torch.ones(2, 13, dtype=torch.bool)
    mask[0, :4], mask[1, :1], mask[1, -3:] = False, False, False
    padded = torch.full((2, 13), 36)
    padded[mask] = IDS.flatten()
    judge_alike(model(padded, mask).logits[mask].view(2, 9, -1), want, sigma)
    documents = torch.tensor([[0] * 4 + [1] * 5] * 2)
    parts = torch.cat([model(IDS[:, :4]).logits, model(IDS[:, 4:]).logits], 1)
    judge_alike(model(IDS, documents=documents).logits, parts, sigma)
    other = IDS.clone()
    other[:, -1] = (other[:, -1] + 1) % 37
    assert bool((model(other).logits != want).any(-1).all())


@torch.no_grad()
def test_segments_are_felt_and_windows_refused():
    model = filled(Encoder(bert(**SIZES)))
    assert torch.equal(model(IDS, segments=torch.zeros_like(IDS)).logits, model(IDS).logits)
    assert not torch.equal(model(IDS, segments=torch.ones_like(IDS)).logits, model(IDS).logits)
    with pytest.raises(ValueError, match="window: expected"):
        Encoder(ModelConfig(**SIZES, window=3))


@torch.no_grad()
@pytest.mark.parametrize(
    "config",
    [t5(**SIZES), t5(**SIZES, tied=False, num_decoder_layers=3), gpt(**SIZES), llama(**SIZES, num_kv_heads=2)],
    ids=["t5", "untied", "learned", "grouped"],
)
def test_encoder_decoder_reads_its_source_once(config):
    model = filled(EncoderDecoder(config))
    source, target = IDS, IDS.flip(1)[:, :7]
    want = model(source, decoder_ids=target).logits
    sigma = spread(model, lambda: model(source, decoder_ids=target).logits)
    kv_cache = model.make_kv_cache(2, 8)
    parts = [model(source, past_key_values=kv_cache, decoder_ids=target[:, :3]).logits]
    parts += [model(None, past_key_values=kv_cache, decoder_ids=target[:, t : t + 1]).logits for t in range(3, 7)]
    judge_alike(torch.cat(parts, 1), want, sigma)
    mask = torch.ones(2, 11, dtype=torch.long)
    mask[0, :2], mask[1, -2:] = 0, 0
    padded = torch.full((2, 11), 5)
    padded[mask.bool()] = source.flatten()
    judge_alike(model(padded, mask, decoder_ids=target).logits, want, sigma)
    other = source.clone()
    other[:, 0] = (other[:, 0] + 1) % 37
    assert bool((model(other, decoder_ids=target).logits != want).any(-1).all())
    kv_cache.reorder(torch.tensor([1, 0]))
    swapped = model(None, past_key_values=kv_cache, decoder_ids=target[:, -1:]).logits
    again = model(source.flip(0), decoder_ids=torch.cat((target.flip(0), target[:, -1:]), 1)).logits[:, -1:]
    judge_alike(swapped, again, sigma[:, -1:])
    with pytest.raises(ValueError, match="ids: expected"):
        model(None, decoder_ids=target)


@torch.no_grad()
@pytest.mark.parametrize("backend", ["reference", "tiled", "flex"])
@pytest.mark.parametrize(
    "made",
    [lambda a: Encoder(bert(**SIZES, attention=a)), lambda a: EncoderDecoder(t5(**SIZES, attention=a))],
    ids=["encoder", "encoder–decoder"],
)
def test_encoders_by_every_backend(made, backend):
    def logits(model):
        mask = torch.ones_like(IDS)
        mask[0, :2], mask[1, -3:] = 0, 0
        given = {"decoder_ids": IDS.flip(1)[:, :7]} if isinstance(model, EncoderDecoder) else {}
        found = model(IDS, mask, **given).logits
        return found if given else found[mask.bool()]

    model, other = filled(made("sdpa")), made(backend).double().eval()
    other.load_state_dict(model.state_dict())
    judge_alike(logits(other), logits(model), spread(model, lambda: logits(model)))


@torch.no_grad()
@pytest.mark.parametrize("backend", ["sdpa", "tiled"])
def test_what_changes_the_scores_is_felt(backend):
    plain = gpt(**SIZES, attention=backend)
    model = filled(Decoder(plain))
    want, sigma = model(IDS).logits, spread(model, lambda: model(IDS).logits)

    def changed(**changes):
        other = Decoder(plain.replace(**changes)).double().eval()
        other.load_state_dict(model.state_dict())
        return other(IDS).logits

    judge_alike(changed(attention_scale=plain.d_k**-0.5, softcap=1e9), want, sigma)
    for changes in ({"attention_scale": 0.5}, {"softcap": 2.0}):
        with pytest.raises(AssertionError, match="times what rounding explains"):
            judge_alike(changed(**changes), want, sigma)
