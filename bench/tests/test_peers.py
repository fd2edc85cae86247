import dataclasses
import json
import sys

import pytest
import torch
from click.testing import CliRunner

from veriformer.bench import document
from veriformer.bench.cli import bench
from veriformer.bench.peers import cases, catalogue, models, turns
from veriformer.bench.peers.catalogue import Sizes
from veriformer.bench.peers.command import line
from veriformer.bench.peers.models import PlainGPT
from veriformer.bench.peers.turns import AGAIN, OURS, Question, Schedule, Times, at_least
from veriformer.bench.verdicts import Verdict

TINY = Sizes(layers=2, width=16, heads=2, length=12, batch=3, vocabulary=11)
BIASES = 2 * 4 * 16  # of the projections of attention, which the specification, as the document, has without


def count(model):
    return sum(p.numel() for p in model.parameters())


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(turns, "_SHORTEST", 0.0)
    monkeypatch.setattr(cases, "_SIDE", 8)
    monkeypatch.setattr(cases, "_PROMPT", 4)
    monkeypatch.setattr(cases, "_NEW", 8)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on a machine that others use, threads of tiny operations wait for each other
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def schedule():
    """A schedule on which every side runs once, and theirs takes exactly twice as long as ours."""

    class Fake(Schedule):
        def run(self, what, sides):
            for run in sides.values():
                run()
            assert OURS in sides
            seconds = {name: [1.0 if name == OURS else 2.0] * 6 for name in sides}
            conditions = document.Conditions(rounds=6, threads=1, clock="wall", load=[0.0, 0.0])
            return Times({**seconds, AGAIN: seconds[OURS]}), conditions

    return Fake(6)


@pytest.fixture
def without_transformers(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)


def test_the_baseline_has_the_parameters_that_the_specification_counts():
    assert count(PlainGPT(TINY)) == TINY.parameters + BIASES
    assert count(cases.ours(TINY).loss) == TINY.parameters + BIASES


def test_the_baseline_sees_no_later_token_and_starts_knowing_nothing():
    torch.manual_seed(0)
    model = PlainGPT(TINY)
    ids = torch.randint(11, (3, 12))
    labels = torch.full_like(ids, -1)
    labels[:, 5] = 2
    other = torch.cat([ids[:, :6], torch.randint(11, (3, 6))], 1)
    loss = model(ids, labels)
    assert torch.equal(loss, model(other, labels))
    other[:, 5] = (other[:, 5] + 1) % 11
    assert not torch.equal(loss, model(other, labels))
    assert 2.2 < float(loss.detach()) < 2.6  # log 11 is 2.4


@pytest.mark.parametrize(
    ("make", "library"),
    [
        (cases.ours, "torch"),
        (cases.plain, "torch"),
        (cases.theirs, "transformers"),
        (cases.x_transformer, "x_transformers"),
    ],
)
def test_every_side_learns_its_batch(make, library):
    pytest.importorskip(library)
    torch.manual_seed(0)
    step = make(TINY)
    before = float(step.loss(step.ids, step.labels).detach())
    for _ in range(10):
        step()
    assert float(step.loss(step.ids, step.labels).detach()) < before


def test_costs_are_those_of_the_specification():
    small = Sizes(layers=1, width=2, heads=1, length=3, batch=5, vocabulary=7)
    pairs, tokens = 3 * 4 // 2, 3
    forward = 24 * tokens * 2**2 + 4 * pairs * 2 + 2 * tokens * 2 * 7
    assert small.training_flops == 5 * 3 * forward
    assert small.weight_bytes == 4 * (small.parameters - 3 * 2)
    assert small.with_batch(1).tokens == 3


def test_training_beside_the_baseline_and_the_ceiling(schedule, without_transformers, monkeypatch):
    monkeypatch.setitem(sys.modules, "x_transformers", None)
    missing, further, plain, ceiling = cases.eager("name", TINY, schedule)
    assert further.reason.startswith("x-transformers is not installed")
    assert (missing.ratio, missing.verdict) == (None, None)
    assert "pip install 'veriformer[peers]'" in missing.reason
    assert (plain.theirs, plain.ratio, plain.verdict) == ("torch.nn", 2.0, Verdict.CONFIRMED)
    assert plain.values == {OURS: 36.0, "torch.nn": 18.0}
    assert (ceiling.goal, ceiling.verdict) == (None, None)
    flops = TINY.training_flops
    assert ceiling.values == {OURS: flops / 1e9, cases.PRODUCT: cases.product_flops() / 2 / 1e9}
    assert ceiling.ratio == flops / (cases.product_flops() / 2)


def test_training_beside_transformers(schedule):
    pytest.importorskip("transformers")
    found = {peer.theirs: peer for peer in cases.eager("name", TINY, schedule)}
    assert found[models.GPT2].goal == at_least(1.15)
    assert found[models.GPT2].verdict is Verdict.CONFIRMED


def test_their_models_have_the_same_size():
    pytest.importorskip("transformers")
    assert count(models.gpt2(TINY)) == TINY.parameters + BIASES
    pytest.importorskip("x_transformers")
    assert abs(count(models.decoder(TINY)) / TINY.parameters - 1) < 0.05


def refuse_to_compile(*_, **__):
    raise RuntimeError("no compiler here\nand much more")


def test_where_nothing_compiles_the_case_says_so(schedule, monkeypatch):
    monkeypatch.setattr(torch, "compile", refuse_to_compile)
    (found,) = cases.compiled("name", TINY, schedule)
    assert (found.ratio, found.reason) == (None, "RuntimeError: no compiler here")
    monkeypatch.setattr(torch, "compile", lambda model: model)
    (found,) = cases.compiled("name", TINY, schedule)
    assert found.verdict is Verdict.CONFIRMED


@pytest.mark.whole
def test_logits_in_chunks_take_less_memory(schedule):
    many = Sizes(layers=1, width=8, heads=1, length=256, batch=64, vocabulary=4096)
    one = cases.peak_bytes(cases.plain, many)
    assert one >= 3 * 4 * many.tokens * many.vocabulary
    memory, speed = cases.chunked("name", TINY, schedule)
    assert (memory.quantity, memory.conditions, memory.noise) == ("peak bytes", None, 1.0)
    assert memory.ratio == memory.values[OURS] / memory.values["torch.nn"]
    assert (speed.ratio, speed.verdict) == (2.0, Verdict.CONFIRMED)
    assert cases.peak_bytes(cases.ours, many) < one


@pytest.fixture
def uncompiled(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda read, **_: read)


def test_decoding_writes_the_same_and_is_timed(schedule, uncompiled):
    pytest.importorskip("transformers")
    against, eager, floor = cases.cached("name", TINY, schedule)
    assert (eager.ratio, eager.values[cases.EAGER]) == (2.0, 3 * 8 / 2)
    assert (against.ratio, against.verdict) == (2.0, Verdict.CONFIRMED)
    assert against.values[OURS] == 3 * 8
    assert floor.ratio == 0.5 / 8


def test_decoding_in_halves_beside_a_cache_that_compiles_itself(schedule, uncompiled, monkeypatch):
    """In halves two right sides part at a near tie: what they write is compared in float32."""
    pytest.importorskip("transformers")
    made = []
    monkeypatch.setattr(torch, "get_default_device", lambda: torch.device("cuda"))
    decoders = cases.decoders
    monkeypatch.setattr(cases, "decoders", lambda sizes: made.append(sizes) or decoders(sizes))
    halves = dataclasses.replace(TINY, layers=3, dtype="bfloat16")
    found = {peer.theirs: peer for peer in cases.cached("name", halves, schedule)}
    assert made == [halves, dataclasses.replace(TINY, layers=2)]
    assert found[cases.COMPILED_GENERATE].verdict is Verdict.CONFIRMED
    assert set(found) == {cases.GENERATE, cases.COMPILED_GENERATE, cases.EAGER, cases.FLOOR}


def test_decoding_where_their_cache_does_not_compile(schedule, uncompiled, monkeypatch):
    pytest.importorskip("transformers")
    decoders = cases.decoders
    monkeypatch.setattr(
        cases, "decoders", lambda sizes: {**decoders(sizes), cases.COMPILED_GENERATE: refuse_to_compile}
    )
    found = {peer.theirs: peer for peer in cases.cached("name", TINY, schedule)}
    assert found[cases.COMPILED_GENERATE].reason == "RuntimeError: no compiler here"
    assert found[cases.GENERATE].ratio == 2.0


def test_decoding_of_different_texts_is_not_timed(schedule, monkeypatch, uncompiled):
    pytest.importorskip("transformers")
    monkeypatch.setattr(cases.targets, "generate", lambda model, prompt, new: prompt)
    (found,) = cases.cached("name", TINY, schedule)
    assert "different tokens" in found.reason


def test_decoding_where_nothing_compiles(schedule, monkeypatch):
    pytest.importorskip("transformers")
    monkeypatch.setattr(torch, "compile", refuse_to_compile)
    (found,) = cases.cached("name", TINY, schedule)
    assert found.reason == "RuntimeError: no compiler here"


@pytest.mark.parametrize("case", [cases.cached, cases.prefill])
def test_generation_without_transformers(schedule, without_transformers, case):
    (found,) = case("name", TINY, schedule)
    assert found.reason.startswith("transformers is not installed")


def test_tiles_and_optimizer(schedule):
    found = list(cases.tiled("name", (1, 2, 5, 4), schedule))
    assert [peer.goal.ratio for peer in found] == [2.0, 2.0, 3.0, 3.0]
    assert {peer.ratio for peer in found} == {0.5}
    (step,) = cases.adamw("name", TINY, schedule)
    assert (step.ratio, step.verdict) == (0.5, Verdict.CONFIRMED)


def test_prefill_is_timed_where_both_choose_the_same(schedule, monkeypatch):
    pytest.importorskip("transformers")
    (found,) = cases.prefill("name", TINY, schedule)
    assert (found.ratio, found.values[OURS], found.goal) == (2.0, TINY.tokens, None)
    monkeypatch.setattr(cases.targets, "from_transformers", lambda peer: models.gpt2(TINY))
    monkeypatch.setattr(torch, "equal", lambda a, b: False)
    (found,) = cases.prefill("name", TINY, schedule)
    assert "different tokens" in found.reason


def test_norms_and_the_loss_beside_pytorch(schedule):
    found = list(cases.rowwise("name", {"N": 3, "d": 4}, schedule))
    assert len(found) == 6
    assert {(peer.ratio, peer.theirs) for peer in found} == {(0.5, cases.TORCH)}


def test_after_its_time_a_comparison_has_six_rounds():
    found = turns.interleaved_benchmark({OURS: lambda: None}, rounds=50, seconds=0)
    assert len(found.seconds[OURS]) == turns.FEWEST_ROUNDS


def test_every_case_has_sizes_that_a_model_can_have():
    assert list(catalogue.CASES) == [*catalogue._MAKERS, *catalogue._ON_GPU]
    assert [catalogue.cases_of(device) for device in ("cpu", "cuda:0")] == [
        tuple(catalogue._MAKERS),
        tuple(catalogue._ON_GPU),
    ]
    for maker, _ in (catalogue._MAKERS | catalogue._ON_GPU).values():
        assert callable(getattr(cases, maker))
    sizes = [sizes for _, sizes in catalogue._MAKERS.values() if isinstance(sizes, Sizes)]
    assert {(s.layers, s.width, s.vocabulary) for s in sizes} == {(4, 128, 65), (6, 384, 65), (4, 128, 50257)}


def test_time_on_a_gpu_ends_when_its_work_does(monkeypatch):
    waits = []
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: waits.append(1))
    monkeypatch.setattr(torch, "get_default_device", lambda: torch.device("cuda"))
    turns.interleaved_benchmark({OURS: lambda: None}, rounds=6)
    assert len(waits) == 2 * 3 + 2 * 2 * 6  # before and after each turn of ours, which is there twice


@pytest.fixture
def commanded(monkeypatch):
    """Two cases of the tests' own: one that reaches its goal by far, and one that cannot be run."""

    def quick(schedule):
        question = Question(case="quick", what="nothing", theirs="sleep", quantity="turns/s", goal=at_least(1.0))
        times, conditions = schedule.run("nothing", {OURS: lambda: None, "sleep": lambda: sum(range(20_000))})
        yield question.timed(times.speed("sleep"), {OURS: 1.0}, conditions)

    def slow(schedule):
        question = Question(case="slow", what="work", theirs="nothing", quantity="turns/s", goal=at_least(1.0))
        times, conditions = schedule.run("work", {OURS: lambda: sum(range(20_000)), "nothing": lambda: None})
        yield question.timed(times.speed("nothing"), {OURS: 1.0}, conditions)

    def ended(schedule):
        raise KeyboardInterrupt

    def gone(schedule):
        yield Question(case="gone", what="nothing", theirs="none", quantity="turns/s").unanswered("nobody is there")

    monkeypatch.setattr(catalogue, "CASES", {"quick": quick, "gone": gone, "slow": slow, "ended": ended})


def run(*words):
    return CliRunner().invoke(bench, ["peers", "--rounds", "6", *words])


def test_the_command_shows_a_line_each_and_writes_them(commanded, tmp_path):
    file = tmp_path / "b.json"
    found = run("quick", "gone", "--json", str(file))
    assert found.exit_code == 0, found.output
    assert "nothing: warming up 2 sides" in found.stderr
    first, second, sums = found.stdout.splitlines()
    assert first.startswith("✓ confirmed     quick  nothing, turns/s, ours / sleep: ")
    assert second == "· not measured  gone  nothing, turns/s, ours / none: nobody is there"
    assert sums == "1 confirmed, 1 not measured"
    written = document.read(file)
    assert written.to_dict() == json.loads(file.read_text())
    assert [peer.verdict for peer in written.peers] == [Verdict.CONFIRMED, None]
    assert written.peers[0].conditions.rounds == 6
    assert written.peers[0].conditions.threads == torch.get_num_threads()


def test_a_goal_that_is_missed_ends_with_1(commanded):
    found = run("gone", "slow")
    assert found.exit_code == 1
    assert "refuted       slow" in found.stdout


def test_what_was_found_before_an_interrupt_is_kept(commanded, tmp_path):
    file = tmp_path / "b.json"
    found = run("quick", "ended", "gone", "--json", str(file))
    assert found.exit_code == 130
    assert [peer.case for peer in document.read(file).peers] == ["quick"]


def test_every_case_is_run_where_none_is_named(commanded):
    assert [word in run().stdout for word in ("quick", "gone", "slow")] == [True] * 3


def test_an_unknown_case_ends_with_2():
    found = run("nonsense")
    assert found.exit_code == 2
    assert "expected one of training-128" in found.output


def test_a_line_says_how_sure_it_is():
    times = Times({OURS: [1.0] * 6, AGAIN: [1.0] * 5 + [1.25], "theirs": [1.2] * 6})
    conditions = document.Conditions(rounds=6, threads=2, clock="cpu", load=[0.5, 1.5])
    question = Question(case="c", what="w", theirs="theirs", quantity="q", goal=at_least(1.15))
    shown = line(question.timed(times.speed("theirs"), {OURS: 12.0, "theirs": 10.0}, conditions))
    assert shown == (
        "inconclusive  c  w, q, ours / theirs: 1.200 [1.067, 1.200]; goal at least 1.15; 12 against 10; "
        "noise ±25.0 %, 6 rounds, threads: 2, cpu clock; load 0.5 to 1.5"
    )
