"""`veriformer train`: from a text to a model, a loss curve and a perplexity, in one command."""

from pathlib import Path
from typing import Any

import click

FAMILIES = ("gpt", "llama")
BACKENDS = ("flex", "reference", "sdpa", "tiled", "triton")
PRECISIONS = ("bf16", "fp16", "fp32")
STRATEGIES = ("none", "ddp", "fsdp")
"""The names that ``veriformer.impl`` has, which is not imported to find out."""


@click.command()
@click.argument("text", required=False, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--dataset", help="Train on a data set of Hugging Face instead, as name or name:config.")
@click.option(
    "--output",
    default=Path("out/train"),
    show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the run is kept.",
)
@click.option("--resume", is_flag=True, help="Go on with the run in the output directory, as if it had not stopped.")
@click.option("--steps", default=300, show_default=True, type=click.IntRange(1), help="Updates of the weights.")
@click.option(
    "--vocabulary", default=256, show_default=True, type=click.IntRange(256), help="256 is bytes; more is BPE."
)
@click.option("--family", default="gpt", show_default=True, type=click.Choice(FAMILIES), help="Kind of model.")
@click.option("--width", default=128, show_default=True, type=click.IntRange(1), help="d_model.")
@click.option("--layers", default=4, show_default=True, type=click.IntRange(1), help="Blocks.")
@click.option("--heads", default=4, show_default=True, type=click.IntRange(1), help="Heads of attention in each.")
@click.option("--length", default=128, show_default=True, type=click.IntRange(2), help="Tokens in a row.")
@click.option("--batch", default=16, show_default=True, type=click.IntRange(1), help="Rows in a micro-batch.")
@click.option("--accumulate", default=1, show_default=True, type=click.IntRange(1), help="Micro-batches in a step.")
@click.option("--lr", default=2e-3, show_default=True, type=click.FloatRange(0), help="Largest learning rate.")
@click.option(
    "--attention",
    default="sdpa",
    show_default=True,
    type=click.Choice(BACKENDS),
    help="Backend of attention; triton needs a GPU, or TRITON_INTERPRET=1.",
)
@click.option("--dropout", default=0.0, show_default=True, type=click.FloatRange(0, 1), help="Share that is left out.")
@click.option(
    "--precision",
    default="fp32",
    show_default=True,
    type=click.Choice(PRECISIONS),
    help="What products are computed in.",
)
@click.option("--strategy", default="none", show_default=True, type=click.Choice(STRATEGIES), help="With torchrun.")
@click.option("--seed", default=0, show_default=True, help="Of weights, batches and dropout.")
def train(text: Path | None, **options: Any) -> None:
    """Train a small language model on TEXT, or on a text that is made for it.

    The last tenth of the text is held out for the perplexity. The output directory holds the weights, the state to
    resume from, the tokenizer, and the loss curve.

    Exit status: 0 trained, 2 unusable arguments.
    """
    _check(text, options)
    # This imports PyTorch, which takes longer than all that is checked before.
    from veriformer.impl.training.whole_run import train_on

    try:
        train_on(text, **options)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _check(text: Path | None, o: dict[str, Any]) -> None:
    """Raise click.UsageError for arguments that do not go together or cannot be used."""
    if text is not None and o["dataset"] is not None:
        raise click.UsageError("TEXT and --dataset: expected one of them, got both; leave one out")
    if o["width"] % o["heads"]:
        raise click.UsageError(
            f"--heads: expected a divisor of --width {o['width']}, got {o['heads']}; change one of the two"
        )
    if o["resume"] and not o["output"].is_dir():
        raise click.UsageError(
            f"--resume: expected a run in {o['output']}, got no such folder; name another as --output, or start anew"
        )
    if text is not None:
        _check_text(text, o["length"])


def _check_text(text: Path, length: int) -> None:
    """Raise click.UsageError for a file that is no text or a text that fills no row: it has at most a token a byte."""
    try:
        size = len(text.read_text(encoding="utf-8").encode())
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{text}: expected a text in UTF-8: {error}; convert it, or name another") from error
    if size * 9 // 10 <= length:
        raise click.UsageError(
            f"{text}: expected more than --length {length} tokens to train on, got {size} bytes, a tenth of which is "
            "held out; give a longer text or a smaller --length"
        )
