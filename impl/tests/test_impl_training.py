"""Training: packing, order, accumulation, precision, clipping, resume, evaluation, and the command."""

import json
import math

import pytest
import torch
from click.testing import CliRunner
from torch.nn import functional as F

from tests.derived_bounds import gamma, random
from tests.training_runs import LENGTHS, texts, trainer
from veriformer.impl import BACKENDS, cross_entropy
from veriformer.impl.models import Decoder, bert, gpt, t5
from veriformer.impl.models.encoder import Encoder
from veriformer.impl.models.encoder_decoder import EncoderDecoder
from veriformer.impl.models.saving import load_model, save_model
from veriformer.impl.training.checkpoint import resume_run, save_run
from veriformer.impl.training.distributed import STRATEGIES
from veriformer.impl.training.objective import Objective, count
from veriformer.impl.training.packing import IGNORED, Batches, pack, windows
from veriformer.impl.training.texts import tokenizer_for
from veriformer.impl.training.trainer import PRECISIONS, clip_gradients
from veriformer.impl.training.whole_run import FAMILIES, fit_temperature, sliding_perplexity
from veriformer.train import command
from veriformer.train.command import train

U = 2.0**-53


def test_packing_keeps_every_token_and_every_border():
    rows = pack(texts(), 12)
    found = []
    for ids, labels, documents in zip(rows.ids, rows.labels, rows.documents, strict=True):
        for number in documents.unique().tolist():
            here = documents == number
            if number < 0:
                assert set(labels[here].tolist()) == {IGNORED}
                continue
            found.append(ids[here].tolist())
            assert labels[here].tolist() == [*ids[here].tolist()[1:], IGNORED]
    assert sorted(found) == sorted(texts())
    assert len(rows) == math.ceil(2 * sum(LENGTHS) / 12)  # nothing could be tighter
    assert [len(t) for t in (pack([[1] * 30], 12).ids)] == [12, 12, 12]


def test_windows_predict_every_token_once():
    rows = windows(torch.arange(20), 6)
    assert rows.ids.tolist() == [list(range(i, i + 6)) for i in (0, 6, 12)]
    assert torch.equal(rows.labels, rows.ids + 1)
    with pytest.raises(ValueError, match="tokens: expected"):
        windows(torch.arange(6), 6)


def test_batches_are_a_function_of_seed_and_position():
    rows = windows(torch.arange(101), 10)
    one, two = Batches(rows, 4, seed=1), [Batches(rows, 4, seed=1, rank=r, world=2) for r in range(2)]
    seen = [next(one) for _ in range(5)]
    for batch in seen:
        parts = torch.cat([next(part).ids for part in two])
        assert sorted(parts[:, 0].tolist()) == sorted(batch.ids[:, 0].tolist())
    assert len({int(i) for batch in seen[:2] for i in batch.ids[:, 0]}) == 8
    assert not torch.equal(seen[0].ids, seen[2].ids)
    later = Batches(rows, 4, seed=9)
    later.load_state_dict({"position": 3, "seed": 1})
    assert torch.equal(next(later).ids, seen[3].ids)
    for size, world in ((3, 2), (11, 1), (0, 1)):
        with pytest.raises(ValueError, match="size: expected"):
            Batches(rows, size, world=world)


def test_the_objective_is_the_loss_of_the_logits_in_each_document():
    t = trainer(dtype=torch.float64)
    batch = next(t.batches)
    with torch.no_grad():
        logits = t.model(batch.ids, documents=batch.documents).logits
        want = cross_entropy(logits, batch.labels, reduction="none")
        got = Objective(t.model)(batch.ids, batch.labels, batch.documents)
    assert 0 < count(batch) < batch.labels.numel()
    assert abs(float(got) - float(want.sum())) <= gamma(5000, U) * float(want.sum())


def test_micro_batches_of_any_size_make_the_same_steps():
    runs = {}
    for size, accumulate in ((8, 1), (4, 2), (2, 4)):
        t = trainer(size=size, accumulate=accumulate, dtype=torch.float64, max_norm=0.5, steps=1, warmup_steps=0)
        t.batches = iter([part for start in range(0, 8, size) for part in [pack(texts(), 12)[start : start + size]]])
        report = t.step()
        runs[size] = (report, torch.cat([p.detach().flatten() for p in t.model.parameters()]))
    assert runs[8][0].norm > 0.5
    assert len({report.tokens for report, _ in runs.values()}) == 1
    for size in (4, 2):
        # One Adam step divides by √v̂: where a gradient is nearly nothing, its rounding is as large as it is.
        moved = (runs[size][1] - runs[8][1]).abs()
        assert float(moved.max()) <= 1e-2 * gamma(5000, U) / 1e-8
        assert abs(runs[size][0].loss - runs[8][0].loss) <= gamma(5000, U) * runs[8][0].loss
        assert abs(runs[size][0].norm - runs[8][0].norm) <= gamma(5000, U) * runs[8][0].norm


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_it_learns_and_resumes_to_the_bit(tmp_path, precision):
    options = {"dropout": 0.2, "precision": precision, "steps": 8, "accumulate": 2}
    whole = trainer(**options)
    reports = list(whole.run())
    first = trainer(**options)
    head = [first.step() for _ in range(3)]
    save_run(first, tmp_path)
    torch.manual_seed(99)
    second = trainer(**options)
    for p in second.model.parameters():
        p.data.zero_()
    resume_run(second, tmp_path)
    assert head + list(second.run()) == reports
    assert all(torch.equal(p, q) for p, q in zip(whole.model.parameters(), second.model.parameters(), strict=True))
    assert all(p.dtype == torch.float32 for p in whole.model.parameters())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.safetensors", "run-0.pt"]
    if precision == "fp32":
        assert reports[-1].loss < reports[0].loss
    with pytest.raises(ValueError, match="config: expected"):
        resume_run(trainer(**{**options, "lr": 1.0}), tmp_path)
    with pytest.raises(ValueError, match="model: expected"):
        resume_run(trainer(**{**options, "dropout": 0.0}), tmp_path)


def test_gradients_are_unscaled_before_they_are_clipped():
    norms = {}
    for precision in ("fp32", "fp16"):
        t = trainer(precision=precision, max_norm=1e-3, steps=1, warmup_steps=0)
        clipped = []
        step = t.optimizer.step
        t.optimizer.step = lambda *a, t=t, step=step, clipped=clipped: (
            clipped.extend(p.grad.clone() for p in t.model.parameters()),
            step(*a),
        )
        norms[precision] = t.step().norm
        assert abs(float(torch.stack([g.norm() for g in clipped]).norm()) - 1e-3) < 1e-3 * 2.0**-10
    assert abs(norms["fp16"] / norms["fp32"] - 1) < 2.0**-7  # 65536 times too large, were it still scaled


def test_a_step_with_a_broken_gradient_is_left_out():
    for precision in ("fp32", "fp16"):
        t = trainer(precision=precision)
        with torch.no_grad():
            t.model.stack.blocks[0].network.down.weight[0, 0] = torch.inf
        before = [p.clone() for p in t.model.parameters()]
        scale = t.scaler.get_scale()
        assert not math.isfinite(t.step().norm)
        assert all(torch.equal(p, q) for p, q in zip(before, t.model.parameters(), strict=True))
        assert t.scaler.get_scale() == (scale if precision == "fp32" else scale / 2)


def test_tied_parameters_count_once_in_the_norm():
    p = torch.nn.Parameter(torch.zeros(2))
    p.grad = torch.tensor([3.0, 4.0])
    assert float(clip_gradients([p, p], 1.0)) == 5.0
    assert p.grad.tolist() == [torch.tensor(3.0).div(5).item(), torch.tensor(4.0).div(5).item()]
    p.grad = torch.tensor([torch.inf, 1.0])
    assert not bool(clip_gradients([p], 1.0).isfinite())
    assert p.grad.tolist() == [math.inf, 1.0]


def test_decay_spares_biases_and_norms():
    t = trainer()
    matrices, vectors = t.optimizer.param_groups
    assert vectors["weight_decay"] == 0 < matrices["weight_decay"]
    assert {p.ndim for p in vectors["params"]} == {1}
    assert 1 not in {p.ndim for p in matrices["params"]}
    assert len(matrices["params"]) + len(vectors["params"]) == len(list(t.model.parameters()))


def test_sliding_perplexity_predicts_each_token_once():
    model = Decoder(gpt(vocab_size=19, d_model=16, num_layers=1, num_heads=2, max_length=32, init_std=0.5)).double()
    tokens = torch.randint(0, 19, (23,), generator=torch.Generator().manual_seed(0))

    def plain(window, stride):
        total, done = 0.0, 0
        for target in range(1, 23):
            start = next(s for s in range(0, 23, stride) if s + window >= target)
            with torch.no_grad():
                logits = model(tokens[None, start:target]).logits[0, -1]
            total, done = total + float(F.cross_entropy(logits, tokens[target])), done + 1
        return math.exp(total / done)

    for window, stride in ((22, 22), (8, 8), (8, 3), (8, 1), (30, 7), (1, 1)):
        want = plain(window, stride)
        assert abs(sliding_perplexity(model, tokens, window=window, stride=stride) - want) <= gamma(20_000, U) * want
    assert plain(8, 1) != plain(8, 8)
    for bad in ({"window": 4, "stride": 5}, {"window": 4, "stride": 0}, {"window": 0, "stride": 1}):
        with pytest.raises(ValueError, match=r"stride|window"):
            sliding_perplexity(model, tokens, **bad)


def test_the_fitted_temperature_is_where_the_loss_is_flat():
    z = random(400, 7)
    y = (z + 2 * random(400, 7, seed=1)).argmax(-1)
    T = fit_temperature(z, y)
    temperature = torch.tensor(T, dtype=torch.float64, requires_grad=True)
    slope = torch.autograd.grad(F.cross_entropy(z / temperature, y), temperature)[0]
    assert abs(float(slope)) <= gamma(10_000, U)
    assert 1.2 < T < 5
    assert abs(fit_temperature(3 * z, y) / (3 * T) - 1) <= gamma(10_000, U)
    for target in (z.argmax(-1), z.argmin(-1)):
        with pytest.raises(ValueError, match="target: expected"):
            fit_temperature(z, target)


@pytest.mark.parametrize("kind", ["decoder", "encoder", "both"])
@torch.no_grad()
def test_saved_models_come_back_with_their_ties(tmp_path, kind):
    sizes = {"vocab_size": 19, "d_model": 8, "num_layers": 1, "num_heads": 2}
    model = {
        "decoder": lambda: Decoder(gpt(**sizes, rope_scaling=("linear", 2.0), position="rope")),
        "encoder": lambda: Encoder(bert(**sizes)),
        "both": lambda: EncoderDecoder(t5(**sizes, tied=False)),
    }[kind]().bfloat16()
    save_model(model, tmp_path / "m.safetensors")
    again = load_model(tmp_path / "m.safetensors")
    assert type(again) is type(model)
    assert again.config == model.config
    assert all(torch.equal(p, q) for p, q in zip(model.parameters(), again.parameters(), strict=True))
    again.embedding.tokens.weight.zero_()
    more = {"decoder_ids": torch.ones(1, 3, dtype=torch.long)} if kind == "both" else {}
    if model.config.tied:
        assert not again(torch.ones(1, 3, dtype=torch.long), **more).logits.any()
    else:
        assert again.head.weight.any()


@pytest.mark.whole
def test_command_from_text_to_perplexity(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the cat sat on the mat and the dog sat on the log. " * 60, encoding="utf-8")
    sizes = ["--width", "16", "--layers", "1", "--heads", "2", "--length", "16", "--batch", "4"]
    options = [
        str(text),
        *sizes,
        "--steps",
        "12",
        "--output",
        str(tmp_path / "run"),
        "--lr",
        "0.02",
        "--dropout",
        "0.1",
    ]
    result = CliRunner().invoke(train, options, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    perplexity = float(result.output.split("perplexity ")[1].split()[0])
    assert 1 < perplexity < 60  # bytes at random would give 256
    points = [json.loads(line) for line in (tmp_path / "run" / "curve.jsonl").read_text().splitlines()]
    assert [p["step"] for p in points] == list(range(1, 13))
    assert points[-1]["loss"] < points[0]["loss"]
    assert "<svg" in (tmp_path / "run" / "curve.svg").read_text()
    assert load_model(tmp_path / "run" / "model.safetensors").config.vocab_size == 256
    again = CliRunner().invoke(train, [*options, "--resume"], catch_exceptions=False)
    assert float(again.output.split("perplexity ")[1].split()[0]) == perplexity
    wrong = CliRunner().invoke(train, [*options, "--strategy", "ddp"])
    assert wrong.exit_code == 2
    assert "torchrun" in wrong.output


def test_names_that_the_command_takes_are_those_of_the_package():
    assert set(command.FAMILIES) == set(FAMILIES)
    assert set(command.BACKENDS) == set(BACKENDS)
    assert set(command.PRECISIONS) == set(PRECISIONS)
    assert command.STRATEGIES == STRATEGIES


def test_tokenizers_give_back_their_text(tmp_path):
    text = "Ada has two apples.\nWürfel, 猫 and 🐈!\n" * 20
    plain = tokenizer_for(text, 256)
    assert plain.decode(plain.encode(text)) == text
    pytest.importorskip("tokenizers")
    pairs = tokenizer_for(text, 300)
    assert pairs.decode(pairs.encode(text)) == text
    assert 256 < pairs.vocab_size <= 300
    assert len(pairs.encode(text)) < len(plain.encode(text)) / 2
    pairs.save(tmp_path / "tokenizer.json")
    assert json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))["model"]["type"] == "BPE"
