"""Generic mutants: every small edit that an operator makes of the source of ``veriformer.impl``.

``edits`` finds what each operator can do to a module; ``rebuilt`` imports the package with one module edited;
``generic_mutants`` gives the records, a fixed share of all edits; ``survivors.json`` lists those that live, each with
the reason.
"""

from veriformer.verify.mutants.generic.records import GenericMutant, generic_mutants, named, survivors

__all__ = ["GenericMutant", "generic_mutants", "named", "survivors"]
