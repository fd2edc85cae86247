"""Texts to train on: a file, a data set of Hugging Face, or one that is made here."""

import random
from pathlib import Path

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
    """Return the text of a file, or of the column `text` of a data set (`name`, `name:config`), or one made here.

    Data sets need the `datasets` library, and the network.
    """
    if dataset is not None:
        from datasets import load_dataset  # an extra, and only for this

        name, _, config = dataset.partition(":")
        return "\n".join(load_dataset(name, config or None, split="train")["text"])
    return made_text() if file is None else file.read_text(encoding="utf-8")
