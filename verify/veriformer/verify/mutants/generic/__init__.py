"""Generic mutants: every small edit that an operator makes of the source of ``veriformer.impl``.

``sites`` lists the edits of a module; ``GenericMutant.build`` imports the package with one module edited;
``generic_mutants`` gives the records, a fixed share of all edits; ``survivors.json`` lists those that live, each with
the reason.
"""

from veriformer.verify.mutants.generic.records import GenericMutant, generic_mutants, named, survivors

__all__ = ["GenericMutant", "generic_mutants", "named", "survivors"]
