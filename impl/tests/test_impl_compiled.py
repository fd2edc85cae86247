"""A compiled decoder writes what the eager one writes."""

import pytest
import torch

from tests.model_configs import DECODERS
from tests.noise_floor import judge_alike, spread
from veriformer.impl.generation.compiled import CompiledDecoder
from veriformer.impl.generation.generate import generate
from veriformer.impl.models import Decoder

pytestmark = [  # of the compiler's own modules
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated:DeprecationWarning"),
]
IDS = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3], [2, 7, 1, 8, 2, 8, 1, 8, 2, 8], [1, 6, 1, 8, 0, 3, 3, 9, 8, 8]])
REAL = torch.tensor([[1] * 10, [0] * 2 + [1] * 8, [0] + [1] * 9])


@torch.inference_mode()
def read_all(model, ids, real):
    """Return the logits after each token but the first three, which are read at once: `[7, B, V]`."""
    kv_cache = model.make_kv_cache(len(ids), 10)
    edges = ((0, 3), *((i, i + 1) for i in range(3, 10)))
    return torch.stack(
        [model.next_token_logits(ids[:, a:b], None if real is None else real[:, :b], kv_cache) for a, b in edges]
    )[1:]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("kind", "ids", "real", "graphs"),  # few, however many lengths there are
    [("gpt", IDS[:1], None, 4), ("window, alibi, grouped, soft-cap", IDS, REAL, 6)],
    ids=["one text", "texts of different lengths"],
)
def test_a_few_graphs_read_every_token_as_the_model_does(kind, ids, real, graphs):
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    torch.manual_seed(0)
    model = Decoder(DECODERS[kind].replace(num_layers=1)).eval()
    for p in model.parameters():
        p.data += 0.1 * torch.randn_like(p)  # biases begin at 0, where nothing misses them
    compiled = CompiledDecoder(model)
    got = read_all(compiled, ids, real)
    judge_alike(got, read_all(model, ids, real), spread(model, lambda: read_all(model, ids, real)))
    prompt, mask = ids[:, :4], None if real is None else real[:, :4]  # 4 and 6 new ones: a cache of the same length
    want = generate(model, prompt, mask, max_new_tokens=6)
    assert torch.equal(generate(compiled, prompt, mask, max_new_tokens=6), want)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= graphs


@pytest.mark.whole
def test_no_model_is_read_by_the_graph_of_another():
    """The compiler keeps graphs by the code of a method, which two models share."""
    torch.compiler.reset()
    for kind in ("gpt", "soft-cap"):
        torch.manual_seed(0)
        model = Decoder(DECODERS[kind].replace(num_layers=1)).double().eval()
        want = generate(model, IDS, REAL, max_new_tokens=4)
        assert torch.equal(generate(CompiledDecoder(model), IDS, REAL, max_new_tokens=4), want)
