"""Implementations that are wrong on purpose, or right in an unusual way: they measure detection and false alarms.

- a **mutant** repeats one bug of public transformer code on the operations concerned (``MUTANTS``);
- a **variant** is correct and must not be accused (``VARIANTS``);
- a **sabotage adapter** computes nothing and must fail whatever it claims (``SABOTAGES``);
- a **generic** mutant is a small edit of our own source that nobody has picked (``generic.generic_mutants``).

``build("mutant", "GQA-01")`` gives the implementation; the command line takes ``mutant:GQA-01`` as a target.
"""

from __future__ import annotations

from collections.abc import Mapping

from veriformer.verify.mutants.correct_variants import VARIANTS
from veriformer.verify.mutants.faults import FAULTS
from veriformer.verify.mutants.records import Mutant, Sabotage, Variant, known_bugs
from veriformer.verify.mutants.sabotage import SABOTAGES

MUTANTS: tuple[Mutant, ...] = tuple(
    Mutant(
        identifier=bug["id"],
        title=bug["title"],
        link=bug["link"],
        area=bug["area"],
        faults=FAULTS[bug["id"]],
        dtypes=tuple(bug.get("dtypes", ("fp32", "fp64"))),
    )
    for bug in known_bugs()
    if "operations" in bug
)

_FAMILIES: Mapping[str, Mapping[str, Mutant | Variant | Sabotage]] = {
    "mutant": {mutant.identifier: mutant for mutant in MUTANTS},
    "variant": {variant.identifier: variant for variant in VARIANTS},
    "sabotage": {sabotage.identifier: sabotage for sabotage in SABOTAGES},
}


def build(family: str, identifier: str) -> object:
    """Build the implementation of that name. Raises LookupError, which lists those that exist."""
    if family == "generic":
        from veriformer.verify.mutants.generic import named  # reads the source of the whole implementation

        return named(identifier).build()
    if family not in _FAMILIES:
        raise LookupError(f"family {family!r}: expected one of {', '.join((*_FAMILIES, 'generic'))}")
    members = _FAMILIES[family]
    if identifier not in members:
        raise LookupError(f"{family} {identifier!r}: expected one of {', '.join(members)}")
    return members[identifier].build()


__all__ = ["MUTANTS", "SABOTAGES", "VARIANTS", "Mutant", "Sabotage", "Variant", "build"]
