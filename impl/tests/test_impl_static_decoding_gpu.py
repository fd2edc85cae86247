"""Generation by a captured step on a GPU: the bits of the eager step, the texts of `generate`, and no wait."""

import pytest
import torch

from tests.attention_oracle import oracle
from tests.derived_bounds import judge, random
from tests.model_configs import DECODERS
from tests.test_impl_static_decoding import IDS, MASK, SAMPLED, continued, model
from tests.triton_kernels import U_FACTOR
from veriformer.impl.generation.compiled import CapturedStep, CompiledDecoder
from veriformer.impl.generation.generate import generate, prefill
from veriformer.impl.generation.sampling import GREEDY
from veriformer.impl.generation.static import StaticDecoding
from veriformer.impl.models import Decoder, llama

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine"),
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),  # of the compiler's own
    pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated:DeprecationWarning"),
]
NEW = 40


@pytest.mark.parametrize("dtype", U_FACTOR, ids=str)
@pytest.mark.parametrize("d", [40, 64, 128, 256])
@pytest.mark.parametrize("options", [{}, {"window": 300, "softcap": 2.0}], ids=str)
def test_attention_to_a_cache_at_every_width(d, options, dtype):
    from veriformer.impl.attention_backends.flash.triton import attend_to_cache

    capacity = 1500
    q, k, v = (random(2, *shape, seed=i).to(dtype) for i, shape in enumerate(((8, 1, d), *[(2, capacity, d)] * 2)))
    length = torch.zeros(1, dtype=torch.int64, device="cuda")
    mask = torch.ones(2, 1, 1, capacity, dtype=torch.bool)
    mask[0, ..., :100] = False
    for n in (101, 128, 1499, capacity):
        rest = [x.clone().index_fill_(2, torch.arange(n, capacity), torch.nan).cuda() for x in (k, v)]
        got = attend_to_cache(q.cuda(), *rest, length.fill_(n), mask=mask.cuda(), scale=d**-0.5, **options).cpu()
        seen = {"mask": mask[..., :n], "is_causal": True, "u_factor": U_FACTOR[dtype], **options}
        judge(got, *oracle(q, k[:, :, :n], v[:, :, :n], torch.zeros_like(got), **seen)["o"])


@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
@pytest.mark.parametrize("dtype", U_FACTOR, ids=str)
@torch.inference_mode()
def test_a_replayed_step_gives_the_bits_of_the_eager_one(sampling, dtype):
    sizes = {"vocab_size": 997, "d_model": 256, "num_layers": 3, "num_heads": 8, "num_kv_heads": 2}
    torch.manual_seed(0)
    m = Decoder(llama(**sizes, window=50)).cuda().to(dtype).eval()
    ids, mask = IDS.cuda(), MASK.cuda()
    texts, logits = [], []
    for captured in (False, True):
        decoding, generator = StaticDecoding(m, 3, 128, sampling, padded=True), torch.Generator("cuda").manual_seed(1)
        assert decoding._in_pieces
        last = torch.zeros(3, 997, dtype=dtype, device="cuda")

        def step(decoding=decoding, last=last):
            last.copy_(decoding.read())
            decoding.write(last)

        taken = CapturedStep(step, last.device, decoding.generator) if captured else step
        texts += [continued(decoding, ids, mask, new, generator, taken) for new in (NEW, 100)]  # the graph serves both
        logits.append(last)
    assert torch.equal(texts[0], texts[2])
    assert torch.equal(texts[1], texts[3])
    assert torch.equal(*logits)


@pytest.mark.parametrize("kind", ["gpt", "llama", "window, alibi, grouped, soft-cap", "t5 bias"])
@pytest.mark.parametrize("sampling", [GREEDY, SAMPLED], ids=["greedy", "sampled"])
def test_texts_are_those_of_generate(kind, sampling):
    torch.compiler.reset()
    m = model(kind).cuda()
    decoder, ids, mask = CompiledDecoder(m), IDS.cuda(), MASK.cuda()
    for new, eos in ((20, None), (9, None), (20, 5)):
        options = {"max_new_tokens": new, "sampling": sampling, "eos": eos}
        first, second = (torch.Generator("cuda").manual_seed(2) for _ in range(2))
        want = generate(m, ids, mask, generator=first, **options)
        assert torch.equal(generate(decoder, ids, mask, generator=second, **options), want)
        assert torch.equal(first.get_state(), second.get_state())
    assert decoder._captured[2].taken > 3


def test_nothing_waits_for_the_device_at_a_token():
    m = Decoder(DECODERS["llama"]).cuda().eval()
    decoder, ids = CompiledDecoder(m), IDS.cuda()
    generate(decoder, ids, max_new_tokens=20, eos=36)
    decoding, step = decoder.capture(3, 26, GREEDY, 36, False, None)
    assert step is decoder._captured[2]
    with torch.inference_mode():
        text = torch.cat((ids, ids.new_zeros(3, 20)), 1)
        decoding.kv_cache.reset()
        logits = prefill(m, ids, None, decoding.kv_cache)
        torch.cuda.synchronize()
        torch.cuda.set_sync_debug_mode("error")
        try:
            decoding.run(text, 6, None, logits, step=step)
        finally:
            torch.cuda.set_sync_debug_mode("default")
