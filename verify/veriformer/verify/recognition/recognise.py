"""From candidates to operations: the form and the reading that explain what each of them does."""

from __future__ import annotations

import importlib
import inspect
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from veriformer.verify.forms.binding import SURROUNDINGS, bound
from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.configs import RATED
from veriformer.verify.forms.form import NEAR, UNKNOWN, Fit, Form, Unfit
from veriformer.verify.forms.meanings import BUILT, CALLED
from veriformer.verify.forms.pin import Pin
from veriformer.verify.forms.registry import every_form
from veriformer.verify.forms.size_names import size_of
from veriformer.verify.forms.table_makers import makers_of
from veriformer.verify.recognition.by_behaviour import BY_BEHAVIOUR, read, vanishes
from veriformer.verify.recognition.candidates import candidates
from veriformer.verify.recognition.elsewhere import names_in, wrong_elsewhere
from veriformer.verify.recognition.fitting import Fitting
from veriformer.verify.recognition.nearest import OPERATION, Reading, choices_of
from veriformer.verify.recognition.options import with_options
from veriformer.verify.recognition.unread import named_and_unread, unexplained_parameters, unread
from veriformer.verify.targets.claims import KNOWN_CONVENTIONS

SHARE = 0.1
"""A named candidate is taken for the operation where its nearest reading is near, or gives such a share of the
numbers."""

LEAST_ANSWERED = 8
"""A candidate that is wrong in some calls is accused only where it answers one in so many of them at least."""


@dataclass(frozen=True)
class Unrecognised:
    """A candidate that resembles an operation and is not judged as it, with the reason. named: by its name."""

    name: str
    operation: str
    reason: str
    named: bool = False


@dataclass(frozen=True)
class Recognised:
    """Result of a recognition. pins: one per candidate. refused: candidates that looked like an operation. unknown:
    names of the candidates that no form knows."""

    pins: tuple[Pin, ...] = ()
    refused: tuple[Unrecognised, ...] = ()
    unknown: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return pins, refusals and unknown names as JSON."""
        return {
            "recognised": [pin.to_dict() for pin in self.pins],
            "not_recognised": [vars(one) for one in self.refused],
            "unknown": list(self.unknown),
        }


def recognise(
    target: object, pinned: Mapping[str, str] | None = None, among: Collection[str] | None = None
) -> Recognised:
    """Recognise the operations of a module, a package, a class, a function or an object.

    pinned: conventions that are claimed, readings among them as ``operation.reading``: nothing else is tried for those.
    among: names of the candidates that are looked at; all of them if left out.
    """
    known: list[tuple[Pin, Candidate]] = []
    refused, unknown = [], []
    every = candidates(target)
    for candidate in every:
        if among is not None and candidate.name not in among:
            continue
        with warnings.catch_warnings():  # what it says of sizes that are only tried is of no use to anybody
            warnings.simplefilter("ignore")
            found, against = of_candidate(candidate, pinned or {})
        known += [(pin, candidate) for pin in found]
        refused += against
        if not found and not against and not candidate.is_module:
            unknown.append(candidate.name)
    left = [candidate for candidate in every if candidate.name in unknown]
    called = {candidate.name: named_and_unread(candidate) for candidate in left}
    refused += [Unrecognised(name, *known, named=True) for name, known in called.items() if known is not None]
    inside = _called_names([candidate for _, candidate in known], every)
    makers = {name for _, candidate in known for name in makers_of(candidate)}  # which a pin tells
    told = [replace(one, named=False) if _last(one.name) in inside else one for one in refused]
    others = [name for name in unknown if name not in [one.name for one in refused]]
    return Recognised(
        tuple(_fullest_first(known)),
        tuple(one for one in told if _last(one.name) not in makers),
        tuple(name for name in others if _last(name) not in makers),
    )


def _called_names(known: Sequence[Candidate], every: Sequence[Candidate]) -> set[str]:
    """Return the names that the code of what was recognised mentions, those of the makers of its tables, and what these
    mention in turn: what they stand for is judged inside of it."""
    of_name = {_last(candidate.name): candidate for candidate in every}
    found: set[str] = set()
    left = list(known)
    while left:
        candidate = left.pop()
        new = {*makers_of(candidate), *names_in(candidate)} - found
        found |= new
        left += [of_name[name] for name in new if name in of_name]
    return found


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _fullest_first(known: Sequence[tuple[Pin, Candidate]]) -> Iterator[Pin]:
    """Yield pins, of several of one operation that first of which the form fixes nothing, and which takes most of its
    arguments."""
    of_operation: dict[str, list[tuple[Pin, Candidate]]] = {}
    for pin, candidate in known:
        of_operation.setdefault(pin.operation, []).append((pin, candidate))
    for several in of_operation.values():
        if len(several) > 1:
            several.sort(key=lambda pair: (_is_fixed(pair[0]), -len(inspect.signature(bound(*pair)).parameters)))
    for pin, _ in known:
        yield of_operation[pin.operation].pop(0)[0]


def _is_fixed(pin: Pin) -> bool:
    """Return whether the form fixes something of it, beside arguments that were found out."""
    return any(not one.endswith(BY_BEHAVIOUR) for one in pin.told)


_OF_NETWORKS = "modules/"
"""Beginning of the names of forms that read networks with weights."""


def of_candidate(candidate: Candidate, pinned: Mapping[str, str]) -> tuple[list[Pin], list[Unrecognised]]:
    """Return the operation that a candidate is, by the form and reading that explain most, and those that it is beside
    it.

    Then why it is not what it looks like: of all forms where it is nothing, else of those that it might be beside it.
    """
    best: Reading | None = None
    beside: dict[str, Reading] = {}
    refused: list[Unrecognised] = []
    named: list[Unrecognised] = []
    for form in every_form().values():
        if pinned.get(f"{form.operation}.form", form.name) != form.name:
            continue
        found, reason = _read(form, candidate, pinned)
        # Of an interface, which is abstract or whose methods raise NotImplementedError, the subclasses are judged.
        interface = inspect.isabstract(candidate.thing) or "raised NotImplementedError" in reason
        told = Unrecognised(candidate.name, form.operation, reason, named=not interface)
        if found is None and reason and candidate.is_network and form.name.startswith(_OF_NETWORKS):
            refused.insert(0, told)  # of a network, a form of networks tells more than a form of functions
        elif found is None:
            refused += [told] if reason else []
        elif reason:
            named += [told] if found.match.named else []
        elif form.beside:
            beside.setdefault(form.operation, found)
        elif best is None or _is_better(found, best):
            best = found
    if best is not None:
        return [_pin(wrong_elsewhere(with_options(best)))], []
    if beside:
        return _pins_beside(list(beside.values())), [one for one in named if one.operation not in beside]
    return [], (named[-1:] or refused[:1])


def _read(form: Form, candidate: Candidate, pinned: Mapping[str, str]) -> tuple[Reading | None, str]:
    """Return the reading of a candidate in a form, and why it is not judged by it; empty where it is."""
    try:
        return _try(form, candidate, pinned)
    except Unfit as reason:
        return None, str(reason)
    except Exception as error:  # whatever it does when it is built or called, or its results do, is its own
        return None, f"{type(error).__name__} while it was tried: {str(error)[:120]}"


def _try(form: Form, candidate: Candidate, pinned: Mapping[str, str]) -> tuple[Reading | None, str]:
    found = read(form, candidate, pinned)
    if found is None:
        return None, ""
    if (noisy := _without_dropout(found, pinned)) is not None:
        return noisy, ""
    against = _against(found)
    if not against or (found.match.named and found.fit.answered):  # another function is the better reason
        against = rival_of(found) or against
    faulty = known_fault_of(found) if against and found.match.named else None
    if faulty is not None:
        return faulty, ""
    if against:
        return found, against
    held = _by_known_fault(found)
    return held, _of_parameters(held) if held is found else ""


def _pins_beside(found: list[Reading]) -> list[Pin]:
    """Return the pins of one candidate that is several operations: one of them may read what another does not."""
    pins = [_pin(one) for one in found]
    unread = [name for name in pins[0].unread if all(name in pin.unread for pin in pins)]
    return [replace(pin, unread=tuple(unread)) for pin in pins]


def _is_better(found: Reading, best: Reading) -> bool:
    if found.form.operation == best.form.operation and found.form.general != best.form.general:
        special, general = (best, found) if found.form.general else (found, best)
        # What another form knows to give is not left out because it is wrong by it.
        if special.match.named and _options_of(special) - _options_of(general):
            return special is found
    if found.fit.everywhere != best.fit.everywhere:
        return found.fit.everywhere
    if found.match.named != best.match.named:
        return found.match.named
    return found.fit.better_than(best.fit)


def _options_of(found: Reading) -> set[str]:
    """Return what a candidate takes by a reading and does not demand, as the contract names it."""
    parameters = inspect.signature(found.form.bind(found.candidate, found.readings)).parameters
    return {name for name, p in parameters.items() if p.default is not p.empty}


_VANISHING = frozenset(("multi_head_attention", "feed_forward", "mlp", "swiglu", "mixture_of_experts"))
"""Operations whose result is 0 where all weights are."""


def _against(found: Reading) -> str:
    """Return the reason why a candidate is not the operation by its nearest reading; empty where it is."""
    fit = found.fit
    if fit.answered == 0:
        return f"no call of it was answered: {fit.error[:160] or 'nothing could be asked'}"
    if 2 * fit.shapeless > fit.answered:  # it works along other axes, or on something else
        return f"{fit.shapeless} of {fit.answered} results have another shape than the operation's"
    if fit.everywhere:
        return ""
    if fit.raised > fit.answered:  # what is left are the smallest calls, which are right by many readings
        return f"it refuses {fit.raised} of the calls that it could take, and answers {fit.answered}: {fit.error[:160]}"
    if LEAST_ANSWERED * fit.answered < fit.calls:
        return f"it answers {fit.answered} of {fit.calls} calls and is right in {fit.right}, which tells too little"
    if found.form.operation in _VANISHING and not vanishes(found):
        return "it adds something to what the operation gives, as a residual connection does"
    if names := _without_part(found):
        return f"it is not right everywhere, and its {names} is no size of the operation"
    if found.match.named and _near(found):
        return ""
    how = f"the nearest reading gives {fit.share:.0%} of the numbers and explains {fit.closeness:.0%} of their variance"
    return how if found.match.named else f"neither name nor signature say so, and {how}"


def _of_parameters(found: Reading) -> str:
    """Return the parameters for which code that no reading makes right may be right; empty where there are none."""
    names = () if found.fit.everywhere else unexplained_parameters(found)
    if not names:
        return ""
    which = ", ".join(map(repr, names))
    return (
        f"its parameter {which} is not the contract's"
        if len(names) == 1
        else f"its parameters {which} are not the contract's"
    )


def _without_dropout(found: Reading, pinned: Mapping[str, str]) -> Reading | None:
    """Return the reading by which a class is right without its dropout, where it is not with it; else None.

    Its instances are in evaluation mode, where dropout changes nothing.
    """
    rates = sorted(RATED.get(found.candidate.thing, ()))
    if found.fit.everywhere or found.form.judge is not None or not rates:
        return None
    try:
        quiet = read(found.form, found.candidate.read_as(tuple((BUILT + name, "0.0") for name in rates)), pinned)
    except Unfit:
        return None
    if quiet is None or not quiet.fit.everywhere:
        return None
    told = f"right without its dropout, which evaluation mode leaves on: {', '.join(rates)}"
    match = replace(quiet.match, told=(*quiet.match.told, told))
    return replace(quiet, candidate=found.candidate, match=match, fit=replace(found.fit, right=0))


def rival_of(found: Reading) -> str:
    """Return the reason why another function explains what no reading does; empty where none explains it."""
    form, candidate = found.form, found.candidate
    if found.fit.everywhere or not (form.rivals or form.variants or form.terms) or form.judge is not None:
        return ""
    fitting = Fitting(OPERATION[form.operation])
    for choice in choices_of(found.match.readings, {}, ""):
        function = form.bind(candidate, choice)
        variants = form.variants(function) if form.variants is not None and not _is_close(found.fit) else {}
        terms = form.terms(function) if form.terms is not None else {}
        rivals = (*form.rivals.items(), *variants.items(), *terms.items())
        name = fitting.explaining(function, rivals, found.conventions)
        if name is not None:
            return f"it has {name}, which the contract's {form.operation} has not"
    return ""


_OF_WEIGHTS = frozenset(("joined", "held", "norms", "head_size"))
"""Readings that say which entries of a module's parameters are whose."""


def _by_known_fault(found: Reading) -> Reading:
    """Return the reading by which a known fault explains what none makes right, of those that differ in whose weights
    are whose: wrong results tell these apart in no other way, and a counterexample by the wrong one would be none.
    """
    own = _OF_WEIGHTS & found.match.readings.keys()
    if found.fit.everywhere or found.fit.ordinary or not own or found.form.judge is not None:
        return found  # plain calls that are right are explained by every fault that others show
    among = {name: x if name in own else (found.readings[name],) for name, x in found.match.readings.items()}
    return known_fault_of(found, among) or found


def known_fault_of(found: Reading, among: Mapping[str, tuple[str, ...]] | None = None) -> Reading | None:
    """Return the reading by which it gives what the operation gives with a known fault: far from right, and yet the
    operation.

    among: the readings to try, by default all. None where no known fault explains it.
    """
    form, candidate = found.form, found.candidate
    if not found.fit.answered or form.judge is not None:
        return None
    mutants, combinators = (
        importlib.import_module(f"veriformer.verify.mutants{name}") for name in ("", ".combinators")
    )  # every faulty implementation there is: asked for by name, and only where nothing else explains it
    fitting = Fitting(OPERATION[form.operation])
    for choice in choices_of(among or found.match.readings, {}, ""):
        function = form.bind(candidate, choice)
        faults = ((mutant.title, mutant.faults.get(form.operation)) for mutant in mutants.MUTANTS)
        rivals = ((x, combinators.faulty(form.operation, fault)) for x, fault in faults if fault is not None)
        title = fitting.explaining(function, rivals, found.conventions)
        if title is not None:
            told = f"it gives what a known fault gives: {title}"
            match = replace(found.match, told=(*found.match.told, told))
            return replace(found, match=match, readings=choice)
    return None


def _near(found: Reading) -> bool:
    """Return whether the nearest reading is near enough, or nothing else has the structure or the name matched.

    By a name alone code is not accused where what its arguments are was found out by trying: it may be another thing.
    """
    fit, guessed = found.fit, any(name.startswith(CALLED) for name, _ in found.candidate.meanings)
    meant = (found.form.closed or found.match.closed) and not guessed
    return meant or _is_close(fit) or fit.share >= SHARE


def _without_part(found: Reading) -> str:
    """Return the arguments of a constructor of which nothing but a number of layers was found to fit, where the
    operation has none; empty where there are none."""
    guessed = [
        name for name, known in found.candidate.meanings if name.startswith(BUILT) and size_of(known) == "layers"
    ]
    names = [] if found.form.name.startswith("models/") else guessed
    return " and ".join(repr(name.removeprefix(BUILT)) for name in names)


def _is_close(fit: Fit) -> bool:
    """Return whether results are right in plain calls, or explain much of the variance of right ones."""
    return fit.ordinary or fit.closeness >= NEAR


def _deviations(found: Reading) -> tuple[str, ...]:
    """Return the readings that are not the contract's."""
    first = {name: values[0] for name, values in found.match.readings.items() if name not in found.form.neutral}
    first[SURROUNDINGS] = ""
    return tuple(name for name, value in found.readings.items() if value not in (first.get(name, value), UNKNOWN))


def _pin(found: Reading) -> Pin:
    told, form, candidate = list(found.match.told), found.form, found.candidate
    settled = form.settled(form.bind(candidate, found.readings)) if form.settled is not None else {}
    conventions = {**found.conventions, **settled}
    own = {key: values[0] for key, values in KNOWN_CONVENTIONS.items() if values}
    return Pin(
        operation=found.form.operation,
        form=found.form.name,
        name=candidate.name,
        readings={**found.readings, **dict(candidate.meanings)},
        deviations=_deviations(found),
        conventions={key: value for key, value in conventions.items() if value != own[key]},
        everywhere=found.fit.everywhere,
        told=tuple(told),
        unread=unread(found),
    )
