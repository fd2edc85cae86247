"""Search for the fastest tiles, with rates of its own instead of a GPU's."""

import ast
import json
from functools import partial

import pytest
import torch
from click.testing import CliRunner

from veriformer.bench import gpu_attention, tiles
from veriformer.bench.cli import bench
from veriformer.bench.gpu_attention import WrongError, expected, verify
from veriformer.bench.tiles import KERNELS, Tried, climb, fastest, launched, neighbours, table, written
from veriformer.impl.attention_backends.flash import launch as launch_module
from veriformer.impl.attention_backends.flash.launch import TABLES, Blocks, Launch, Tiles, launch

WISHED = Blocks(128, 32, 8, 3)


def rate(blocks):
    """Return a rate that is largest at 128 x 32 with 8 warps and 3 stages, and 0 where nothing would fit."""
    if blocks.rows * blocks.cols * blocks.stages > 128 * 64 * 3:
        return 0.0
    return 100.0 - sum(abs(getattr(blocks, x) - getattr(WISHED, x)) for x in ("rows", "cols", "warps", "stages"))


def test_the_fastest_tiles_are_found_one_step_at_a_time():
    best, rates = climb(Blocks(32, 64, 4, 1), rate)
    assert best == WISHED
    assert rates[best] == 100.0
    assert len(rates) < 40


def test_tiles_that_nothing_beats_stay():
    best, rates = climb(Blocks(64, 64, 4, 2), lambda blocks: float(blocks == Blocks(64, 64, 4, 2)))
    assert (best, len(rates)) == (Blocks(64, 64, 4, 2), 1 + len(list(neighbours(best))))


def test_kernels_are_launched_in_given_tiles():
    before, given = launch(128, torch.bfloat16, False, 232_448), Launch.square(16)
    with launched(given):
        assert launch(128, torch.bfloat16, False, 232_448) == given
    assert launch(128, torch.bfloat16, False, 232_448) == before


@pytest.fixture
def card(monkeypatch):
    """A card whose kernels have planted rates, with the shared memory of the table's first."""
    ran = []

    def planted(launch, kernel, width, dtype):
        blocks = getattr(launch, kernel)
        ran.append((width, kernel, launch))
        if blocks.cols == 128:
            raise WrongError("dq: the error is 3 times what rounding explains")
        if not rate(blocks):
            raise RuntimeError("out of resource: shared memory\nand more")
        return rate(blocks)

    monkeypatch.setattr(tiles, "rate", planted)
    monkeypatch.setattr(tiles, "triton_attention", lambda: attend)
    monkeypatch.setattr(launch_module, "shared_memory", lambda device: TABLES[0].shared)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU")
    return ran


def entry(text):
    """Read an entry of the table as it is pasted."""
    return eval(compile(ast.parse(text, mode="eval"), "launch.py", "eval"), vars(launch_module) | {"Tiles": Tiles})


def test_every_kernel_is_tuned_and_printed_as_an_entry_of_the_table(card, tmp_path):
    file = tmp_path / "tiles.json"
    found = CliRunner().invoke(bench, ["tune", "--width", "64", "--width", "128", "--json", str(file)])
    assert found.exit_code == 0, found.output
    made = entry(found.stdout)
    assert made.shared == TABLES[0].shared
    assert made.measured.startswith("a GPU, PyTorch ")
    assert made.measured.endswith(", bfloat16: widths 64, 128")
    best = Launch(*[WISHED] * 4)
    assert made.halves == {64: best, 128: best, 256: TABLES[0].halves[256]}
    kept = json.loads(file.read_text())
    assert kept["environment"]["device"] == "a GPU"
    assert [row["width"] for row in kept["chosen"]] == [64, 128]
    assert kept["chosen"][0]["to_bias"] == {"rows": 128, "cols": 32, "warps": 8, "stages": 3}
    assert len(kept["tried"]) == len(card) == len(found.stderr.splitlines())
    assert {row["kernel"] for row in kept["tried"]} == set(KERNELS)
    wrong = [row for row in kept["tried"] if row["wrong"]]
    assert wrong
    assert all(row["tflops"] is None and row["blocks"]["cols"] == 128 for row in wrong)
    assert "WRONG (WrongError: dq: the error is 3 times what rounding explains)" in found.stderr
    assert "not timed (RuntimeError: out of resource: shared memory)" in found.stderr


def test_tiles_found_for_a_kernel_serve_the_next(card):
    tiles.tune(64, "bfloat16", lambda one: None)
    assert {launch.forward for _, kernel, launch in card if kernel != "forward"} == {WISHED}


def test_what_was_tried_before_an_interrupt_is_kept(card, tmp_path, monkeypatch):
    planted, file = tiles.rate, tmp_path / "tiles.json"

    def interrupted(launch, kernel, width, dtype):
        if kernel == "to_keys":
            raise KeyboardInterrupt
        return planted(launch, kernel, width, dtype)

    monkeypatch.setattr(tiles, "rate", interrupted)
    found = CliRunner().invoke(bench, ["tune", "--json", str(file)])
    assert found.exit_code == 130
    before = TABLES[0].halves[64]
    assert entry(found.stdout).halves[64] == Launch(WISHED, WISHED, before.to_keys, before.to_bias)
    assert {row["kernel"] for row in json.loads(file.read_text())["tried"]} == {"forward", "to_queries"}


def test_where_no_kernel_can_run_one_line_says_so(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)

    def unavailable():
        raise RuntimeError("triton: expected the package, got none")

    monkeypatch.setattr(tiles, "triton_attention", unavailable)
    found = CliRunner().invoke(bench, ["tune"])
    assert (found.exit_code, found.stdout) == (2, "")
    assert "triton: expected the package, got none" in found.stderr


def test_where_nothing_runs_there_is_nothing_to_paste(card, monkeypatch):
    def broken(*given):
        raise RuntimeError("no kernel for this device")

    monkeypatch.setattr(tiles, "rate", broken)
    found = CliRunner().invoke(bench, ["tune", "--width", "256"])
    assert (found.exit_code, found.stdout) == (1, "")


def test_the_search_begins_at_smaller_tiles_where_those_of_the_table_do_not_fit(card, monkeypatch):
    small = TABLES[-1].halves[64].forward
    monkeypatch.setattr(tiles, "rate", lambda launch, *_: 50.0 if launch.forward == small else 1 / 0)
    tried = []
    tiles.tune(64, "bfloat16", tried.append)
    assert fastest(tried)[64].forward == small


def test_ties_keep_the_tiles_that_were_tried_first(card):
    one, other = (Tried(64, "forward", Blocks(side, 64, 4, 2), 10.0) for side in (64, 32))
    slow = Tried(64, "forward", Blocks(16, 64, 4, 2), 9.0)
    assert fastest([slow, one, other])[64].forward == one.blocks
    assert written(one.blocks) == "Blocks(64, 64, 4, 2)"
    assert "widths 64'" in table(fastest([one]), "a GPU")


def attend(q, k, v, *, is_causal, bias=None, share=1, scale=None):
    """The formula, with weights rounded as kernels round them; a share of the bias has a gradient."""
    n, bias = q.shape[2], torch.zeros(()) if bias is None else bias
    s = (q.float() @ k.float().mT) * (scale or q.shape[3] ** -0.5) + share * bias + (1 - share) * bias.detach()
    if is_causal:
        s = s.masked_fill(torch.ones(n, n).triu(1).bool(), -torch.inf)
    return (s.softmax(-1).to(q.dtype).float() @ v.float()).to(q.dtype)


@pytest.mark.parametrize(("kernel", "products"), [("forward", 2), ("to_queries", 3), ("to_keys", 4), ("to_bias", 2)])
def test_a_kernel_is_timed_by_itself(kernel, products, monkeypatch):
    ran = []

    def interleaved(runs, *, rounds):
        ran.extend(run() for run in runs.values())
        return {name: [1e-4] * rounds for name in runs}

    monkeypatch.setattr(tiles, "interleaved", interleaved)
    monkeypatch.setattr(tiles, "triton_attention", lambda: attend)
    monkeypatch.setattr(tiles, "_DEVICE", torch.device("cpu"))
    monkeypatch.setattr(tiles, "LENGTH", 32)
    monkeypatch.setattr(gpu_attention, "_TOKENS", 32)
    monkeypatch.setattr(gpu_attention, "_MODEL", 32)
    tflops = tiles.rate(Launch.square(16), kernel, 16, "bfloat16")
    assert round(tflops * 1e12 * 1e-4) == products * 2 * 2 * 32 * 32 * 16
    (found,) = ran
    shapes = [tuple(x.shape) for x in (found if isinstance(found, tuple) else (found,))]
    of_queries = (1, 2, 32, 16)
    assert shapes == {"to_keys": [of_queries] * 2, "to_bias": [(1, 1, 32, 32)]}.get(kernel, [of_queries])
    fault = {"share": 0.5} if kernel == "to_bias" else {"scale": 0.3}
    monkeypatch.setattr(tiles, "triton_attention", lambda: partial(attend, **fault))
    with pytest.raises(WrongError):
        tiles.rate(Launch.square(16), kernel, 16, "bfloat16")


def test_a_gradient_of_a_bias_is_judged_too():
    options = {"width": 64, "dtype": torch.bfloat16, "is_causal": False, "device": torch.device("cpu"), "biased": True}
    verify(attend, **options)
    with pytest.raises(WrongError, match=r"^dbias: the error is"):
        verify(lambda *given, **named: attend(*given, **named, share=0.5), **options)
    assert expected(64, torch.bfloat16, False, True)[4][0].shape == (1, 1, 193, 193)
