"""A whole run of training: from a text to a model, a loss curve and a perplexity."""

import sys
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from veriformer.impl.generation.generate import generate
from veriformer.impl.generation.sampling import Sampling
from veriformer.impl.models import Decoder, gpt, llama
from veriformer.impl.training.batches import Batches
from veriformer.impl.training.checkpoint import WEIGHTS, resume_run, save_run
from veriformer.impl.training.distributed import Team
from veriformer.impl.training.evaluation import sliding_perplexity
from veriformer.impl.training.metrics_log import MetricsLog
from veriformer.impl.training.packing import windows
from veriformer.impl.training.texts import text_of
from veriformer.impl.training.tokens import Tokenizer, tokenizer_for
from veriformer.impl.training.trainer import Trainer, TrainingConfig

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
    curve = MetricsLog(output, trainer.step_count) if trainer.team.rank == 0 else None
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
