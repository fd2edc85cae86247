"""The code of the documents, run where these are present: it prints what they say it prints."""

import contextlib
import io
import math
import re
import sys
from pathlib import Path

import numpy as np
import torch

from veriformer.spec.arithmetic import Float
from veriformer.spec.attention.attention import attention
from veriformer.spec.sources.source_coverage import quoted_lines, statements

sys.path.insert(0, str(Path(__file__).parent))

from scanned_documents import documents

TEXTS = documents()

# Lines of document 004, by the cells that need nothing from outside, and of what they print.
CELLS = (((187, 196), (200, 200)), ((223, 225), (229, 229)), ((295, 308), (312, 314)), ((392, 415), (419, 419)))


def lines(document, first, last):
    return "\n".join(TEXTS[document].split("\n")[first - 1 : last])


def numbers(text):
    """Every number of a text to four digits: more than that depends on the machine's rounding."""
    return [f"{float(x):.3e}" for x in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", text)]


def test_what_is_said_to_be_run_is_run():
    run_lines = {n for pair in CELLS for first, last in pair for n in range(first, last + 1)}
    said = [q for s in statements() if s.reason == "run" for q in s.quoted]
    assert said
    assert {q.document for q in said} == {"004"}
    assert {n for q in said for n in quoted_lines(q)} <= run_lines


def run(*cells):
    names = {"torch": torch, "sqrt": math.sqrt, "softmax": torch.softmax}
    printed = []
    for document, first, last in cells:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(lines(document, first, last), names)
        printed.append(out.getvalue())
    return names, printed


def test_cells_print_what_is_printed():
    if "004" in TEXTS:
        _, printed = run(*(("004", *cell) for cell, _ in CELLS))
        expected = [lines("004", *output) for _, output in CELLS]
        assert [numbers(p) for p in printed] == [numbers(e) for e in expected]
        assert len(numbers(printed[-1])) == 10


def test_only_the_last_norm_of_the_stack_has_gradients_above_epsilon():
    if "004" in TEXTS:
        names, _ = run(("004", 392, 415))
        norms = {name: float(p.grad.norm()) for name, p in names["blocks"].named_parameters()}
        assert len(norms) == 36
        assert list(norms)[:10] == [
            *(f"0.{p}" for p in ("fc.0.weight", "fc.0.bias", "fc.2.weight", "fc.2.bias", "norm.weight", "norm.bias")),
            *(f"1.{p}" for p in ("fc.0.weight", "fc.0.bias", "fc.2.weight", "fc.2.bias")),
        ]
        large = {name for name, norm in norms.items() if norm > 1e-5}
        assert large == {"5.norm.weight", "5.norm.bias"}


def test_the_code_of_an_encoder_is_attention():
    if "003" in TEXTS:
        names, _ = run(("003", 620, 628))
        rng = np.random.default_rng(0)
        q, k, v = (torch.from_numpy(rng.normal(size=(3, 4))) for _ in range(3))
        names["project_qkv"], names["d_k"] = lambda x: (q, k, v), 4
        xp = Float()
        ours = attention(xp, *(xp.asarray(a.numpy()[None, None]) for a in (q, k, v))).value[0, 0]
        assert np.abs(names["encoder_attention"](None).numpy() - ours).max() < 1e-14


def test_the_code_of_a_causal_mask_returns_ones():
    if "003" in TEXTS:
        names, _ = run(("003", 656, 659))
        assert names["causal_mask"](2).tolist() == [[1, -math.inf], [1, 1]]


def test_the_code_of_a_cache_appends_and_loses_what_is_beyond_its_end():
    if "003" in TEXTS:
        names, _ = run(("003", 1088, 1113))
        cache = names["KVCache"](num_layers=1, num_heads=1, d_head=1, max_seq_len=2)
        for x in (1.0, 2.0, 3.0):
            row = torch.full((1, 1, 1, 1), x)
            keys, values = cache.update(0, row, -row)
        assert keys.flatten().tolist() == [1, 2]
        assert values.flatten().tolist() == [-1, -2]
        assert cache.cache[0]["current_length"] == 3


def test_the_code_of_the_small_model_sees_the_token_that_it_is_to_predict():
    if "004" in TEXTS:
        names, _ = run(("004", 516, 534))
        torch.manual_seed(0)
        model = names["TinyTransformer"](11).eval()
        assert [tuple(p.shape) for p in (model.embed.weight, model.pos.weight)] == [(11, 64), (64, 64)]
        x = torch.tensor([[1, 2, 3]])
        changed = torch.tensor([[1, 4, 3]])
        with torch.no_grad():
            first, other = (model(tokens)[0][0, 0] for tokens in (x, changed))
        assert not torch.equal(first, other)


def test_two_class_probabilities_of_opposite_logits():
    if "004" in TEXTS:
        names = {"np": np}
        exec(lines("004", 242, 245), names)
        xp = Float()
        z = np.stack([names["z"], -names["z"]], axis=-1)
        from veriformer.spec.scores.softmax import softmax

        p = softmax(xp, xp.asarray(z)).value
        assert np.abs(names["loss_pos"] + np.log(p[:, 0])).max() < 1e-12
        assert np.abs(names["p"] - p[:, 0]).max() < 1e-15
