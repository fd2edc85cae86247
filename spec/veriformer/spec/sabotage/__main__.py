"""`python -m veriformer.spec.sabotage`: mutate, try, and print what nothing noticed."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path

import click

from veriformer.spec.sabotage.equivalent import EQUIVALENT
from veriformer.spec.sabotage.mutation import KINDS, ROOT, Mutation, all_mutations
from veriformer.spec.sabotage.trial import Outcome, tried


@click.command()
@click.option("--sample", type=click.IntRange(min=1), help="So many, drawn evenly from the kinds. [default: all]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sample and of its order.")
@click.option("--kind", "kinds", type=click.Choice(KINDS), multiple=True, help="Only mutations of these kinds.")
@click.option("--limit", type=float, default=120.0, show_default=True, help="Seconds that one mutation may take.")
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True, help="Mutations at the same time.")
@click.option("--journal", default="out/sabotage.jsonl", show_default=True, help="Where outcomes are kept.")
@click.option("--tests", default="spec/tests", show_default=True, help="Where the tests of the specification are.")
def main(
    sample: int | None, seed: int, kinds: tuple[str, ...], limit: float, jobs: int, journal: str, tests: str
) -> None:
    """Mutate the specification, one change at a time, and print what neither a proof nor a test notices.

    Outcomes are kept in the journal as long as the specification and its tests stand as they are: what was interrupted
    goes on from there. Mutants that are equivalent are listed in `equivalent.py`, with the reason.
    """
    chosen = drawn([m for m in all_mutations() if not kinds or m.kind in kinds], sample, seed)
    click.echo(f"{len(chosen)} mutations, seed {seed}")
    file, state = Path(journal), digest(Path(tests))
    known = recall(file, state)
    file.parent.mkdir(parents=True, exist_ok=True)
    todo = [m for m in chosen if m.name not in known and m.name not in EQUIVALENT]
    with file.open("a", encoding="utf-8") as out, ThreadPoolExecutor(jobs) as pool:
        found = pool.map(partial(tried, tests=Path(tests), limit=limit), todo)
        for mutation, outcome in zip(todo, found, strict=True):
            known[mutation.name] = outcome
            out.write(json.dumps({"state": state, "name": mutation.name, **asdict(outcome)}) + "\n")
            out.flush()
    report(chosen, known)


def drawn(mutations: Sequence[Mutation], sample: int | None, seed: int) -> list[Mutation]:
    """Draw a sample in which the kinds alternate; all mutations if sample is None."""
    if sample is None:
        return list(mutations)
    rng = random.Random(seed)
    shuffled = {kind: rng.sample(of, len(of)) for kind in KINDS if (of := [m for m in mutations if m.kind == kind])}
    turns = max(map(len, shuffled.values()), default=0)
    return [of[k] for k in range(turns) for of in shuffled.values() if k < len(of)][:sample]


@cache
def digest(tests: Path) -> str:
    """Return a digest of every file that an outcome depends on."""
    total = hashlib.sha256()
    for file in sorted([*ROOT.rglob("*.py"), *ROOT.rglob("*.tsv"), *tests.glob("*.py")]):
        total.update(file.read_bytes())
    return total.hexdigest()[:16]


def recall(file: Path, state: str) -> dict[str, Outcome]:
    """Return the outcomes in the journal that still hold."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    rows = [json.loads(line) for line in lines]
    return {r["name"]: Outcome(r["by"], r["detail"], r["seconds"]) for r in rows if r["state"] == state}


def report(mutations: Sequence[Mutation], outcomes: dict[str, Outcome]) -> None:
    """Print a line per kind, then every survivor."""
    for kind in KINDS:
        of = [m for m in mutations if m.kind == kind]
        counts = Counter("equivalent" if m.name in EQUIVALENT else outcomes[m.name].by for m in of)
        if of:
            noticed = counts["proof"] + counts["test"]
            told = ", ".join(f"{n} {word}" for word, n in sorted(counts.items()))
            click.echo(f"{kind:10}  {noticed} of {len(of) - counts['equivalent']} noticed ({told})")
    for mutation in mutations:
        if mutation.name in EQUIVALENT:
            click.echo(f"equivalent  {mutation}: {EQUIVALENT[mutation.name]}")
        elif not outcomes[mutation.name].killed:
            click.echo(f"{outcomes[mutation.name].by}  {mutation}")


if __name__ == "__main__":
    main()
