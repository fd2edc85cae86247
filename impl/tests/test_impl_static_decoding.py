"""Generation in static memory writes what `generate` writes, and never asks the host for anything."""

import contextlib

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.model_configs import DECODERS
from tests.noise_floor import judge_alike, spread
from veriformer.impl.generation import compiled
from veriformer.impl.generation.compiled import CompiledDecoder
from veriformer.impl.generation.generate import generate, left_padded, prefill
from veriformer.impl.generation.sampling import GREEDY, Sampling
from veriformer.impl.generation.static import LAG, StaticDecoding
from veriformer.impl.models import Decoder

TEXTS = [[3, 1, 4, 1, 5, 9], [2, 7], [1, 8, 2, 8]]
IDS, MASK = left_padded(TEXTS, padding=7)
N, NEW, CAPACITY = 6, 20, 32
KINDS = [kind for kind in DECODERS if kind != "experts"]
SAMPLED = Sampling(temperature=0.8, top_k=4, top_p=0.9)
every_kind = pytest.mark.parametrize("kind", KINDS)


def model(kind, **changes):
    torch.manual_seed(0)
    m = Decoder(DECODERS[kind].replace(**changes)).double().eval()
    for p in m.parameters():
        p.data += 0.1 * torch.randn_like(p)  # biases begin at 0, where nothing misses them
    return m


@torch.inference_mode()
def continued(decoding, ids, mask=None, new=NEW, generator=None, step=None):
    """Return what `generate` returns, by static memory."""
    n = ids.shape[1]
    text = torch.cat((ids, ids.new_zeros(len(ids), new)), 1)
    real = None if mask is None else torch.cat((mask, mask.new_ones(len(ids), new)), 1)
    decoding.kv_cache.reset()
    logits = prefill(decoding.model, ids, real, decoding.kv_cache)
    return decoding.run(text, n, real, logits, generator, step)


@every_kind
def test_texts_are_those_of_generate(kind):
    m = model(kind)
    decoding = StaticDecoding(m, 3, CAPACITY, padded=True)
    for ids, mask in ((IDS, MASK), (IDS.flip(0), MASK.flip(0)), (IDS[:, 2:], MASK[:, 2:])):
        want = generate(m, ids, mask, max_new_tokens=NEW)
        assert torch.equal(continued(decoding, ids, mask), want)
    alone = StaticDecoding(m, 1, N + NEW)
    assert torch.equal(continued(alone, IDS[:1]), generate(m, IDS[:1], max_new_tokens=NEW))


def read_all(m, ids, mask, static):
    """Return the logits after each token but the first four, which are read at once: `[n − 4, B, V]`."""
    start, n = 4, ids.shape[1]
    with torch.inference_mode():
        if static:
            decoding = StaticDecoding(m, len(ids), CAPACITY, padded=True)
            prefill(m, ids[:, :start], mask, decoding.kv_cache)
            decoding._begin(ids, start + 1, mask)
            return torch.stack([(decoding.place.fill_(i), decoding.read())[1] for i in range(start, n)])
        kv_cache = m.make_kv_cache(len(ids), n)
        prefill(m, ids[:, :start], mask, kv_cache)
        return torch.stack([prefill(m, ids[:, i : i + 1], mask, kv_cache) for i in range(start, n)])


@every_kind
def test_logits_are_those_of_the_ordinary_cache(kind):
    m, ids = model(kind), torch.randint(37, (3, 12), generator=torch.Generator().manual_seed(1))
    mask = torch.ones_like(ids).masked_fill(torch.arange(12) < torch.tensor([[0], [3], [1]]), 0)
    got, want = (read_all(m, ids, mask, static) for static in (True, False))
    judge_alike(got, want, spread(m, lambda: read_all(m, ids, mask, False)))


@pytest.mark.parametrize("ends_early", [False, True])
def test_samples_are_those_of_generate_and_the_generator_ends_where_it_would(ends_early):
    m, ends = model("gpt"), set()
    free = generate(m, IDS, MASK, max_new_tokens=NEW, sampling=SAMPLED, generator=torch.Generator().manual_seed(0))
    eos = int(free[:, N:].mode().values.mode().values) if ends_early else None
    decoding = StaticDecoding(m, 3, CAPACITY, SAMPLED, eos, padded=True)
    for seed in range(8):
        first, second = (torch.Generator().manual_seed(seed) for _ in range(2))
        want = generate(m, IDS, MASK, max_new_tokens=NEW, sampling=SAMPLED, eos=eos, generator=first)
        got = continued(decoding, IDS, MASK, generator=second)
        assert torch.equal(got, want)
        assert torch.equal(first.get_state(), second.get_state())
        ends.add(got.shape[1])
    assert not ends_early or (len(ends) > 2 and min(ends) < N + NEW - LAG)
    torch.manual_seed(3)
    got = continued(decoding, IDS, MASK)
    torch.manual_seed(3)
    assert torch.equal(got, generate(m, IDS, MASK, max_new_tokens=NEW, sampling=SAMPLED, eos=eos))


@pytest.mark.parametrize("new", [1, LAG - 1, LAG, LAG + 1, NEW])
def test_rows_end_at_eos_and_the_text_when_all_did(new):
    m = model("gpt")
    free = generate(m, IDS, MASK, max_new_tokens=NEW)[:, N:]
    for eos in {int(free[0, 0]), int(free[0, 5]), int(free[1, 7]), int(free[2, -1])}:
        decoding = StaticDecoding(m, 3, CAPACITY, eos=eos, padded=True)
        alone = StaticDecoding(m, 1, CAPACITY, eos=eos)
        for rows, one in ((slice(3), decoding), (slice(1), alone)):
            mask = MASK[rows] if one is decoding else None
            want = generate(m, IDS[rows], mask, max_new_tokens=new, eos=eos)
            assert torch.equal(continued(one, IDS[rows], mask, new), want)


def test_the_host_goes_on_for_a_few_steps_and_no_further():
    m, taken = model("gpt"), []
    first = int(generate(m, IDS[:1], max_new_tokens=1)[0, -1])
    decoding = StaticDecoding(m, 1, CAPACITY, eos=first)
    got = continued(decoding, IDS[:1], step=lambda: taken.append(decoding.step()))
    assert got.shape[1] == N + 1
    assert len(taken) == LAG - 1


def test_bytes_in_the_cache():
    m = model("llama")
    decoding = StaticDecoding(m, 3, CAPACITY, padded=True, quantization="int8")
    want = generate(m, IDS, MASK, max_new_tokens=NEW, quantization="int8")
    assert torch.equal(continued(decoding, IDS, MASK), want)


def test_positions_end_where_they_end():
    m = model("gpt", max_length=12)
    assert torch.equal(continued(StaticDecoding(m, 3, 40), IDS, new=7), generate(m, IDS, max_new_tokens=7))
    with pytest.raises(ValueError, match="ids: expected at most max_length=12"):
        continued(StaticDecoding(m, 3, 40), IDS, new=8)
    eos = int(generate(m, IDS[:1], max_new_tokens=5)[0, -1])
    want = generate(m, IDS[:1], max_new_tokens=20, eos=eos)
    assert torch.equal(continued(StaticDecoding(m, 1, 40, eos=eos), IDS[:1], new=20), want)


def test_a_generator_of_another_device_is_refused():
    decoding = StaticDecoding(model("gpt"), 3, CAPACITY, SAMPLED)
    with pytest.raises(TypeError, match="generator: expected"):
        continued(decoding, IDS, generator=7)


class Watched(TorchDispatchMode):
    """Lists operators with the shapes of what they take and give; refuses those after which the host knows a value."""

    def __init__(self, device):
        self.device, self.seen = device, []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.overloadpacket.__name__
        assert name not in {"_local_scalar_dense", "is_nonzero", "equal", "nonzero", "masked_select", "_unique2"}, name
        result = func(*args, **(kwargs or {}))
        tensors = [x for x in tree_leaves((args, kwargs, result)) if torch.is_tensor(x)]
        assert {x.device.type for x in tensors} <= {self.device}, name
        self.seen.append((name, [(tuple(x.shape), x.stride(), x.dtype) for x in tensors]))
        return result


@every_kind
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_a_step_reads_nothing_on_the_host_and_is_the_same_at_every_length(kind, sampling):
    decoding = StaticDecoding(model(kind), 3, CAPACITY, sampling, 5, padded=True)
    lists = []
    with torch.no_grad():  # in inference mode numbers are read past every dispatcher
        for place in (5, 6, CAPACITY - 2):
            decoding.place.fill_(place)
            with Watched("cpu") as watched:
                decoding.step()
            lists.append(watched.seen)
    assert lists[0] == lists[1] == lists[2] != []


@every_kind
def test_a_step_makes_nothing_on_the_host(kind):
    """A copy from there would wait for the device, and a capture refuses it; "meta" stands for the device."""
    decoding = StaticDecoding(model(kind).to("meta"), 3, CAPACITY, eos=5, padded=True)
    with torch.no_grad(), Watched("meta"):
        decoding.step()


@pytest.fixture
def on_a_gpu(monkeypatch):
    """Let a compiled decoder take the way that it takes on a GPU, but for compiler and capture."""
    monkeypatch.setattr(CompiledDecoder, "can_capture", lambda self, text: True)
    monkeypatch.setattr(compiled, "_compiled", lambda read: read)
    monkeypatch.setattr(compiled, "CapturedStep", lambda step, *_: step)


def test_a_compiled_decoder_keeps_its_step(on_a_gpu):
    m = model("llama")
    decoder = CompiledDecoder(m)
    options = {"max_new_tokens": NEW, "sampling": SAMPLED}

    def texts(**more):
        return [generate(one, IDS, MASK, generator=torch.Generator().manual_seed(0), **{**options, **more})
                for one in (m, decoder)]  # fmt: skip

    assert torch.equal(*texts())
    first = decoder._captured
    assert first[1].capacity == compiled._CAPACITY_STEP
    assert torch.equal(*texts(max_new_tokens=5, chunk=2))
    with torch.no_grad():
        m.embedding.tokens.weight *= 1.1
    assert torch.equal(*texts())
    assert decoder._captured is first
    assert torch.equal(*texts(max_new_tokens=0))
    longer = {"max_new_tokens": compiled._CAPACITY_STEP}
    for change in ({"sampling": GREEDY}, {"eos": 5}, {"quantization": "int8"}, longer):
        assert torch.equal(*texts(**change))
        assert decoder._captured is not first
        first = decoder._captured
    assert torch.equal(*texts())
    m.float()
    assert torch.equal(*texts())
    assert decoder._captured[1].kv_cache.layers[0]._dtype == torch.float32


def test_a_step_is_captured_once_and_replayed_from_then_on(monkeypatch):
    """A capture runs nothing: the token that it is made for is written by its first replay."""
    done = []

    class Fake:
        def __init__(self, *_, **__):
            self.register_generator_state = lambda generator: done.append("register")
            self.replay = lambda: done.append("replay")
            self.wait_stream = lambda stream: None

        def __enter__(self):
            done.append("enter")

        def __exit__(self, *_):
            done.append("exit")

    for name in ("CUDAGraph", "Stream", "graph", "stream", "current_stream"):
        monkeypatch.setattr(torch.cuda, name, Fake)
    monkeypatch.setattr(torch.cuda, "device", lambda device: contextlib.nullcontext())
    step = compiled.CapturedStep(lambda: done.append("step"), torch.device("cuda"), torch.Generator())
    for _ in range(5):
        step()
    once = ["enter", "step", "exit"]
    assert done == [*once, *once, "register", *once, "replay", "replay", "replay"]


@pytest.mark.parametrize("change", [{}, {"num_experts": 2}, {"dropout": 0.1}, {"attention_dropout": 0.1}], ids=str)
def test_what_is_captured(change):
    m = Decoder(DECODERS["no position, relu"].replace(activation="gelu", **change))
    text = torch.empty(0, device="meta")

    class OnGPU:
        is_cuda = True

    assert CompiledDecoder(m.train()).can_capture(OnGPU) == (change == {})
    assert CompiledDecoder(m.eval()).can_capture(OnGPU) == ("num_experts" not in change)
    assert not CompiledDecoder(m).can_capture(text)


@pytest.mark.whole
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated:DeprecationWarning")
@pytest.mark.parametrize("kind", ["gpt", "window, alibi, grouped, soft-cap", "llama"])
def test_one_compiled_graph_reads_every_token(kind):
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    m = model(kind)
    decoding = StaticDecoding(m, 3, CAPACITY, padded=True)
    read = compiled._compiled(decoding.read)
    got = continued(decoding, IDS, MASK, step=lambda: decoding.write(read()))
    assert torch.equal(got, generate(m, IDS, MASK, max_new_tokens=NEW))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
