"""A whole run of training: from a text to a model, a loss curve with its picture, and a perplexity.

A model is evaluated by a sliding window, and by the temperature that calibrates it.
"""

import json
import math
import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor
from torch.nn import functional as F

from veriformer.impl import checks
from veriformer.impl.generation.generate import generate
from veriformer.impl.generation.sampling import Sampling
from veriformer.impl.losses.linear_cross_entropy import linear_cross_entropy
from veriformer.impl.models import Decoder, gpt, llama
from veriformer.impl.training.checkpoint import WEIGHTS, resume_run, save_run
from veriformer.impl.training.distributed import Team
from veriformer.impl.training.packing import IGNORED, Batches, windows
from veriformer.impl.training.texts import Tokenizer, text_of, tokenizer_for
from veriformer.impl.training.trainer import Report, Trainer, TrainingConfig

FAMILIES = {"gpt": gpt, "llama": llama}


def train_on(text: Path | None, **options: Any) -> None:
    """Train on a text, with the options of `veriformer train`. Raises ValueError for what does not go together."""
    team = Team.join(options["strategy"])
    run(text, team, Console(stderr=False, quiet=team.rank > 0), **options)
    team.leave()


def run(text: Path | None, team: Team, console: Console, **o: Any) -> float:
    """Train, show how it goes, and return the perplexity on what was held out."""
    words = text_of(text, o["dataset"])
    cut = len(words) * 9 // 10
    tokenizer = tokenizer_for(words[:cut], o["vocabulary"])
    known, held_out = (torch.tensor(tokenizer.encode(part)) for part in (words[:cut], words[cut:]))
    trainer = _trainer(known, tokenizer, team, o)
    if o["resume"]:
        resume_run(trainer, o["output"])
    size = sum(p.numel() for p in trainer.model.parameters())
    console.print(f"{len(known):,} tokens of {tokenizer.vocab_size:,} kinds, {size:,} parameters")
    _loop(trainer, o["output"], console)
    tokenizer_path = Path(o["output"]) / "tokenizer.json"
    if team.rank == 0:
        tokenizer.save(tokenizer_path)
    perplexity = sliding_perplexity(
        trainer.model, held_out.to(trainer.device), window=o["length"], stride=o["length"] // 2
    )
    console.print(f"perplexity {perplexity:.3f} on {len(held_out):,} held-out tokens")
    if team.strategy == "none":
        console.print(_sample(trainer.model, tokenizer, known[: o["length"] // 4], o["seed"]), markup=False)
    console.print(f"{Path(o['output']) / WEIGHTS}, curve.svg, curve.jsonl", markup=False)
    return perplexity


def _trainer(tokens: torch.Tensor, tokenizer: Tokenizer, team: Team, o: dict[str, Any]) -> Trainer:
    torch.manual_seed(o["seed"])
    config = FAMILIES[o["family"]](
        vocab_size=tokenizer.vocab_size,
        d_model=o["width"],
        num_layers=o["layers"],
        num_heads=o["heads"],
        max_length=o["length"],
        dropout=o["dropout"],
        attention=o["attention"],
        attention_dropout=o["dropout"],
    )
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Decoder(config).to(device)
    batches = Batches(windows(tokens, o["length"]), o["batch"], seed=o["seed"], rank=team.rank, world=team.world)
    plan = TrainingConfig(
        steps=o["steps"],
        accumulate=o["accumulate"],
        lr=o["lr"],
        warmup_steps=min(20, o["steps"]),
        precision=o["precision"],
    )
    torch.manual_seed(o["seed"] + 1 + team.rank)  # the dropout of each process is its own
    return Trainer(model, batches, plan, team)


def _loop(trainer: Trainer, output: Path, console: Console) -> None:
    curve = _MetricsLog(output, trainer.step_count) if trainer.team.rank == 0 else None
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    every = max(1, trainer.config.steps // 10)
    with Progress(*columns, console=console, disable=not sys.stdout.isatty()) as progress:
        task = progress.add_task("training", total=trainer.config.steps, completed=trainer.step_count)
        for report in trainer.run():
            if curve is not None:
                curve.add(report)
            progress.update(task, advance=1, description=f"loss {report.loss:.4f}")
            if report.step % every == 0:
                console.print(f"step {report.step:>6}  loss {report.loss:.4f}  rate {report.lr:.2e}")
                save_run(trainer, output)
    save_run(trainer, output)
    if curve is not None:
        curve.draw()


def _sample(model: Decoder, tokenizer: Tokenizer, start: torch.Tensor, seed: int) -> str:
    device = model.embedding.tokens.weight.device
    new = model.config.max_length - len(start)
    generator = torch.Generator(device).manual_seed(seed)
    ids = generate(
        model,
        start[None].to(device),
        max_new_tokens=new,
        sampling=Sampling(temperature=0.8, top_p=0.95),
        generator=generator,
    )
    return tokenizer.decode(ids[0].tolist())


class _MetricsLog:
    """Writes each report to `curve.jsonl` in the directory of the run, and draws `curve.svg` at the end."""

    def __init__(self, directory: Path, resumed_at: int = 0) -> None:
        self.path = directory / "curve.jsonl"
        directory.mkdir(parents=True, exist_ok=True)
        old = self.path.read_text(encoding="utf-8").splitlines() if resumed_at and self.path.is_file() else []
        self.points = [point for point in map(json.loads, old) if point["step"] <= resumed_at]
        self.path.write_text("".join(f"{json.dumps(point)}\n" for point in self.points), encoding="utf-8")

    def add(self, report: Report) -> None:
        """Write one step."""
        point = {
            "step": report.step,
            "loss": report.loss,
            "norm": report.norm,
            "lr": report.lr,
            "tokens": report.tokens,
        }
        self.points.append(point)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(point)}\n")

    def draw(self) -> None:
        """Draw the loss over the steps."""
        from matplotlib.figure import Figure  # slow to import, and wanted once

        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        axes.plot([p["step"] for p in self.points], [p["loss"] for p in self.points], linewidth=1)
        axes.set_xlabel("step")
        axes.set_ylabel("loss in nats per token")
        axes.grid(alpha=0.3)
        figure.savefig(self.path.with_suffix(".svg"), metadata={"Date": None})


@torch.inference_mode()
def sliding_perplexity(model: Decoder, tokens: Tensor, *, window: int, stride: int) -> float:
    r"""Return the perplexity of one text `tokens [t]`, each token but the first predicted exactly once (equation 41).

    $$\mathrm{PPL} = \exp\Big(-\frac{1}{t - 1} \sum_{i=2}^{t} \log p(w_i \mid w_{a_i}, \dots, w_{i-1})\Big)$$

    Windows of `window` tokens advance by `stride`; of each, only what no window before has predicted counts. So a token
    has at least `window − stride` tokens before it, or all there are; `stride = window` is the plain cut into rows.
    Raises `ValueError` for a stride outside [1, window] and for fewer than two tokens.
    """
    n = checks.integer("window", window, minimum=1)
    if checks.integer("stride", stride, minimum=1) > n:
        checks.raise_for("stride", f"at most window={n}", stride, "tokens between windows would not be predicted")
    if checks.integers("tokens", tokens).ndim != 1 or len(tokens) < 2:
        checks.raise_for(
            "tokens", "shape [t] with t of 2 or more", f"shape {tuple(tokens.shape)}", "nothing is predicted"
        )
    model.eval()
    total, done, targets = 0.0, 0, len(tokens) - 1
    for start in range(0, targets, stride):
        stop = min(start + n, targets)
        labels = tokens[start + 1 : stop + 1].clone()
        labels[: done - start] = IGNORED
        total += float(_loss(model, tokens[None, start:stop], labels[None]))
        done = stop
        if done == targets:
            break
    return math.exp(total / targets)


def _loss(model: Decoder, ids: Tensor, labels: Tensor) -> Tensor:
    head = model.head
    weight = model.embedding.tokens.weight if head.weight is None else head.weight
    h = head.head_input(model.hidden_states(ids))
    return linear_cross_entropy(h, weight, labels, bias=head.bias, ignore_index=IGNORED, reduction="sum")


@torch.no_grad()
def fit_temperature(logits: Tensor, target: Tensor, *, steps: int = 100) -> float:
    r"""Return the temperature at which `softmax(logits / T)` gives the targets the highest likelihood (section 11.2).

    In $\beta = 1/T$ the loss is convex; its derivative, $\frac1N \sum_i (\mathbb E_p[z_i] - z_{i y_i})$, is monotone,
    and its zero is found by halving, in float64. Shapes: `logits [..., V]`, `target [...]` int64. Raises `ValueError`
    where no finite temperature above 0 is best: all targets have the largest logits, or do no better than chance.
    """
    z = logits.detach().double().reshape(-1, logits.shape[-1])
    y = target.reshape(-1, 1)
    z = z - z.amax(-1, keepdim=True)

    def slope(beta: float) -> float:
        return float(((F.softmax(beta * z, -1) * z).sum(-1, keepdim=True) - z.gather(-1, y)).mean())

    low, high = 0.0, 1.0
    if slope(0.0) >= 0 or not bool(z.gather(-1, y).any()):
        checks.raise_for("target", "targets that a finite temperature fits best", "others", "collect more samples")
    while slope(high) < 0:
        high *= 2
    for _ in range(checks.integer("steps", steps, minimum=1)):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) < 0 else (low, middle)
    return 2 / (low + high)
