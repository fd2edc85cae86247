"""Search for the meanings of arguments with unknown names: each is tried in every open role, the best fit is taken."""

from __future__ import annotations

import heapq
import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from veriformer.verify.forms.candidate import Candidate, words
from veriformer.verify.forms.form import Form, Match, OtherParts, Unfit, UnknownArgument
from veriformer.verify.forms.holding import Holder
from veriformer.verify.forms.meanings import BUILT, CALLED, IDENTITY, VALUES, WITHOUT, Meanings
from veriformer.verify.forms.size_names import size_of
from veriformer.verify.recognition.fitting import Fitting
from veriformer.verify.recognition.nearest import OPERATION, SCREENED, Reading, Untold, choices_of, nearest

DEEPEST = 4
"""Maximum number of arguments of one candidate that are found out."""

BY_BEHAVIOUR = "by what it does"
"""End of what is told of an argument whose meaning was found out."""

TRIED, BUILDS, KEPT, FITTED = 192, 64, 4, 6
"""Maximum numbers of combinations of meanings that are tried, that are built, of constructors that are called, and that
are fitted."""


def read(form: Form, candidate: Candidate, pinned: Mapping[str, str]) -> Reading | None:
    """Return the nearest reading of a candidate in a form; None where the form does not know it.

    Arguments that the form does not know are found out by what they do. Raises Unfit where it cannot be read, and where
    several meanings of an argument explain what it does as well.
    """
    start = f"{form.operation}."
    said = [(key.removeprefix(start), value) for key, value in pinned.items() if key.startswith(start)]
    candidate = candidate.read_as(tuple(one for one in said if one[0].startswith((BUILT, CALLED, WITHOUT))))
    try:
        match = form.match(candidate)
    except UnknownArgument as unknown:
        return _found_out(form, candidate, unknown, pinned)
    except OtherParts as others:
        candidate = _without_parts(candidate, others)
        found = read(form, candidate, pinned)
        if found is None:
            return None
        if not found.fit.everywhere and not vanishes(found):
            added = "it adds something to what the operation gives, as a residual connection does"
            raise Unfit(f"without {', '.join(map(repr, others.names))} {added}") from others
        told = () if candidate.meanings != found.candidate.meanings else _told(candidate)
        return replace(found, match=replace(found.match, told=(*found.match.told, *told)))
    if match is None:
        return None
    try:
        return nearest(form, candidate, match, pinned)
    except Untold as reason:
        return _without(form, candidate, reason, pinned)


def _without_parts(candidate: Candidate, others: OtherParts) -> Candidate:
    """Return the candidate with the identity in place of its norms: a layer may begin or end with one."""
    return candidate.read_as(tuple((WITHOUT + name, IDENTITY) for name in others.names))


def vanishes(found: Reading) -> bool:
    """Return whether nothing is left of a layer's result where all its weights are 0."""
    function = found.form.bind(found.candidate, found.readings)
    return found.form.judge is not None or Fitting(OPERATION[found.form.operation]).vanishes(function)


def _without(form: Form, candidate: Candidate, reason: Untold, pinned: Mapping[str, str]) -> Reading:
    """Return the reading by which it is given no mask, where it demands one that no call tells and can do without."""
    masks = [name for name, p in candidate.parameters.items() if p.default is p.empty and "mask" in words(name)]
    one = candidate.read_as(tuple((CALLED + name, "None") for name in masks))
    match = form.match(one) if masks else None
    found = None if match is None else nearest(form, one, match, pinned)
    if found is None or not found.fit.answered:
        raise reason
    return replace(found, match=replace(found.match, told=(*found.match.told, *_told(one))))


def _found_out(form: Form, candidate: Candidate, unknown: UnknownArgument, pinned: Mapping[str, str]) -> Reading:
    drawn = Fitting(OPERATION[form.operation]) if form.judge is None else None
    answering = [
        (one, match)
        for built in _built(form, candidate, pinned, drawn)
        for one, match in itertools.islice(_bindings(form, candidate.read_as(built), meanings_of), BUILDS)
        if drawn is None or _answers(form, one, match, pinned, drawn)
    ]
    found: list[Reading] = []
    for one, match in answering[:FITTED]:
        if drawn is not None and any(_same(one, match, reading, drawn) for reading in found):
            continue
        try:
            found.append(nearest(form, one, match, pinned, drawn))
        except Unfit:  # no call tells how something else of it is read
            continue
        if found[-1].fit.everywhere and not _of_calls(one):  # another size or value that fits is as good
            break
    if not found:
        raise unknown
    best = max(found, key=lambda reading: (reading.fit.everywhere, reading.match.named, reading.fit.rank()))
    others = [one for one in found if one is not best and one.fit.rank() == best.fit.rank()]
    if others and (
        not best.fit.everywhere or any(_of_calls(one.candidate) != _of_calls(best.candidate) for one in others)
    ):
        what = unknown.argument.removeprefix(BUILT).removeprefix(CALLED)
        either = " or ".join(repr(dict(one.candidate.meanings)[unknown.argument]) for one in (best, *others[:1]))
        raise Unfit(f"its {what!r} may be {either}, and no call tells which: give it a name that says so")
    return replace(best, match=replace(best.match, told=(*best.match.told, *_told(best.candidate))))


def _built(form: Form, candidate: Candidate, pinned: Mapping[str, str], drawn: Fitting | None) -> list[Meanings]:
    """Return the meanings of the constructor's arguments whose instances hold the weights of calls; the smallest first.

    Where no combination does, and where there are none, they stay unsaid.
    """
    if drawn is None or not candidate.is_class:
        return [()]

    def choices(unknown: UnknownArgument) -> tuple[str, ...]:
        return meanings_of(unknown) if unknown.argument.startswith(BUILT) else ("None",)

    found: list[tuple[int, int, Meanings]] = []
    for one, match in itertools.islice(_bindings(form, candidate, choices), BUILDS):
        built = tuple((name, known) for name, known in one.meanings if name.startswith(BUILT))
        reached = _count_reached(form, one, match, pinned, drawn) if built else 0
        if reached:
            found.append((-reached, _held(one), built))
    best = sorted(found, key=lambda entry: entry[:2])[:KEPT]
    return [built for reached, _, built in best if reached == best[0][0]] or [()]


def _bindings(
    form: Form, candidate: Candidate, choices: Callable[[UnknownArgument], tuple[str, ...]]
) -> Iterator[tuple[Candidate, Match]]:
    """Yield the candidate by every combination of meanings in which the form knows it, the likeliest first."""
    order = itertools.count()
    left = [(0, next(order), candidate)]
    for _ in range(TRIED):
        if not left:
            return
        cost, _, one = heapq.heappop(left)
        try:
            match = form.match(one)
        except UnknownArgument as unknown:
            said = dict(one.meanings)
            if len(said) < DEEPEST and unknown.argument not in said:
                for i, known in enumerate(choices(unknown)):
                    heapq.heappush(left, (cost + i, next(order), one.read_as(((unknown.argument, known),))))
        except OtherParts as others:
            heapq.heappush(left, (cost, next(order), _without_parts(one, others)))
        except Exception:  # whatever it does when it is built so
            continue
        else:
            if match is not None:
                yield one, match


def _answers(form: Form, candidate: Candidate, match: Match, pinned: Mapping[str, str], drawn: Fitting) -> bool:
    """Return whether some call is answered by the first readings, or by readings that differ from them in one."""
    first = next(choices_of(match.readings, pinned, f"{form.operation}."), None)
    if first is None:
        return False
    others = ({**first, name: x} for name, values in match.readings.items() for x in values if x != first[name])
    return any(drawn.count_answers(form.bind(candidate, choice), SCREENED)[0] for choice in (first, *others))


def _count_reached(form: Form, candidate: Candidate, match: Match, pinned: Mapping[str, str], drawn: Fitting) -> int:
    """Return the number of calls that reach the code by the first readings: its instances have a place for their
    weights."""
    first = next(choices_of(match.readings, pinned, f"{form.operation}."), None)
    return 0 if first is None else drawn.count_answers(form.bind(candidate, first), SCREENED)[1]


def _held(candidate: Candidate) -> int:
    """Return the number of parameters of the instances that were made for the calls."""
    return sum(p.numel() for made in Holder.of(candidate).instances() for p in made.parameters())


def _same(candidate: Candidate, match: Match, reading: Reading, drawn: Fitting) -> bool:
    """Return whether a candidate gives the results of a fitted one: a larger instance is filled up with zeros."""
    if _of_calls(candidate) != _of_calls(reading.candidate) or match.readings.keys() != reading.match.readings.keys():
        return False
    functions = [reading.form.bind(one, reading.readings) for one in (candidate, reading.candidate)]
    return drawn.explaining(functions[0], [("it", functions[1])], reading.conventions) is not None


def _of_calls(candidate: Candidate) -> dict[str, str]:
    """Return the meanings of arguments of calls, without those that are given a value."""
    return {name: known for name, known in candidate.meanings if name.startswith(CALLED) and known not in VALUES}


def describe_meaning(name: str, known: str) -> str:
    """Return the words for an argument of an unknown name."""
    return f"its {name!r} is what others call {known!r}, {BY_BEHAVIOUR}"


def _told(candidate: Candidate) -> Iterator[str]:
    for argument, known in candidate.meanings:
        name = argument.removeprefix(BUILT).removeprefix(CALLED)
        if argument.startswith(WITHOUT):
            yield f"its part {argument.removeprefix(WITHOUT)!r}, a norm, is left out"
            continue
        how = "built" if argument.startswith(BUILT) else "called"
        if known in VALUES:
            yield f"{how} with {name} = {known}"
        else:
            yield describe_meaning(name, known)


_ACTIVATIONS = ("'gelu'", "nn.GELU()", "nn.GELU")
_KINDS: Mapping[str, tuple[str, ...]] = {
    "float": ("dropout", "eps"),
    "bool": ("False", "True"),
    "str": ("'gelu'", "'relu'"),
}
"""By annotation, what an argument of a constructor may be beside a size."""

_RATES = ("dropout", "eps")
_LARGE = ("max_len", "base")
"""Sizes so large that what is built from them by mistake, such as a table of pairs of pairs, fills the memory: they are
tried only where the name has a word of them."""

_EVERY = ("dropout", "False", "True", "None", *_ACTIVATIONS, "nn.LayerNorm")


def meanings_of(unknown: UnknownArgument) -> tuple[str, ...]:
    """Return what an argument may be, the likeliest first: by its annotation, what is open, and words of its name.

    Nothing where its name is that of a size which the form has no value for.
    """
    said = _annotation(unknown.parameter)
    if unknown.argument.startswith(CALLED):
        if said == "bool":
            return ("False", "True")
        values = ("0", "1") if said in ("int", "float") else ("None", "0", "0.0", "False")
        return (
            (*values[:1], *unknown.names, *values[1:])
            if "None" in said or "Optional" in said
            else (*unknown.names, *values)
        )
    name = unknown.argument.removeprefix(BUILT)
    if size_of(name):  # it is known, and the form has no such size
        return ()
    own = set(words(name))
    sizes = [name for name in unknown.names if name not in _RATES and (name not in _LARGE or _HINTS[name] & own)]
    if "d_ff" in sizes:
        sizes.insert(sizes.index("d_ff") + 1, "ff_mult")
    if said in ("float", "bool", "str"):
        return _KINDS[said]
    if "Callable" in said or "Module" in said or said.startswith("type"):
        return (*_ACTIVATIONS[1:], "nn.LayerNorm")
    every = sizes if said == "int" else (*sizes, *_EVERY)
    return tuple(sorted(every, key=lambda name: not _HINTS.get(name, frozenset()) & own))


_HINTS: Mapping[str, frozenset[str]] = {
    name: frozenset(hints.split())
    for names, hints in {
        "num_heads num_layers": "n num number count nb",
        "d_model d_ff": "dim size width hidden d features channels units",
        "ff_mult": "scale scaling factor ratio rate mult multiplier expand expansion",
        "dropout": "p prob probability rate keep",
        "False True": "is use with has do add enable return",
        "'gelu' nn.GELU() nn.GELU": "act activation fn function nonlinearity",
        "nn.LayerNorm": "norm",
        "max_len": "max len length seq sequence positions context",
        "base": "base theta",
    }.items()
    for name in names.split()
}
"""Words that make a meaning likelier: they say what is tried first, and nothing else."""


def _annotation(p: inspect.Parameter | None) -> str:
    if p is None or p.annotation is p.empty:
        return ""
    said: Any = p.annotation
    return said if isinstance(said, str) else getattr(said, "__name__", "") or str(said)
