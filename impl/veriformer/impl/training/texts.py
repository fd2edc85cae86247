"""Texts to train on: a file, a data set of Hugging Face, or one that is made here."""

import random
from pathlib import Path

from veriformer.impl import checks

NAMES = ["Ada", "Bela", "Carl", "Dora", "Emil", "Fanny", "Gustav", "Hanna"]
THINGS = ["apple", "boat", "candle", "drum", "egg", "feather", "glass", "hat"]
PLACES = ["in the garden", "at the harbour", "under the bridge", "on the hill", "behind the mill"]
NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def made_text(stories: int = 400, seed: int = 0) -> str:
    """Make a text with something to learn: words, sentences, who holds how many of what, and what they add up to."""
    source = random.Random(seed)
    return "\n".join(_story(source) for _ in range(stories))


def _story(source: random.Random) -> str:
    giver, taker = source.sample(NAMES, 2)
    thing, place = source.choice(THINGS), source.choice(PLACES)
    had, got = source.randrange(1, 7), source.randrange(1, 7)
    return (
        f"{taker} has {_many(had, thing)} {place}. {giver} brings {_many(got, thing)}. "
        f"Now {taker} has {_many(had + got, thing)}.\n"
    )


def _many(number: int, thing: str) -> str:
    return f"{NUMBERS[number]} {thing}" + ("" if number == 1 else "s")


def text_of(file: Path | None, dataset: str | None) -> str:
    """Return the text of a file, or of a data set of Hugging Face, or one made here."""
    if dataset is not None:
        return _text_of_dataset(dataset)
    return made_text() if file is None else file.read_text(encoding="utf-8")


def _text_of_dataset(dataset: str) -> str:
    """Return the column `text` of the training part of a data set: `name`, `name:config`, or a folder of files.

    Raises `ValueError` without the library `datasets`, for what it cannot find, and where there is no such column.
    """
    try:
        from datasets import load_dataset  # an extra, and only for this
    except ImportError:
        checks.raise_for("dataset", "the package datasets", "none", "install it with pip install 'veriformer[text]'")
    name, _, config = dataset.partition(":")
    try:
        rows = load_dataset(name, config or None, split="train")
    except OSError as error:
        checks.raise_for("dataset", "a data set that can be read", repr(dataset), f"see what hinders it: {error}")
    if "text" not in rows.column_names:
        checks.raise_for("dataset", "a column named text", rows.column_names, "rename the one to read")
    return "\n".join(rows["text"])
