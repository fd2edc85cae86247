"""Forms: the ways in which public code offers an operation of the contract, one small file each.

A **candidate** (``candidate.py``) is a public thing of somebody's file: a function, a class, an object, or the module
itself. A **form** (``form.py``) recognises candidates of one operation and says how to call them. Every file in a
folder of this package defines ``FORM`` (or ``FORMS``, a tuple); the entry point group ``veriformer.forms`` adds those
of installed packages: an entry point is a Form, a tuple of them, or a module that has ``FORM`` or ``FORMS``. A form
declares

``name``
    The folder and the file, such as ``functions/qkv_attention``: how a pin in ``CLAIMS`` or an adapter names it.
``operation``
    The operation of the contract that it offers.
``says``
    One line for people: how such code is called.
``match(candidate)``
    None where the candidate has nothing to do with the operation; a ``Match`` where it can be called;
    ``raise Unfit(reason)`` where it looks like the operation and cannot be judged as it. ``Match.named`` says whether
    name *and* signature name the operation: only such a candidate is judged where no reading fits it everywhere.
    ``Match.readings`` are the known conventions to try, the contract's own value first; ``Match.told`` what the form
    fixes.
``bind(candidate, readings)``
    The operation with the contract's own signature, made by ``as_operation(operation, call, options, ...)``: arguments
    that the code does not take are left out of it, as in any other target.
    What cannot be called so raises ``NotOffered``.
    The function may have an attribute ``refused``, by feature of calls why it has none such: those are never drawn.
``conventions``
    Keys of ``KNOWN_CONVENTIONS`` (``targets/claims.py``) that the formula itself may be read by, tried like readings.
``neutral``
    Names of readings that are no deviation whatever their value: which of a module's parameters is whose.
``rivals``
    Functions that are called like the operation and are another one that people use: code that one of them explains
    is not recognised, by its name.
``variants``
    From the bound operation to further rivals, which take over something of the code, as the frequencies of a rotation:
    tried where the code is far from the operation.
``terms``
    From the bound operation to it with a term that the code adds, by a factor that is measured: also where it is close.
``closed``
    Whether whatever it matches is the operation or one of the rivals, however far its results are off: by its parts,
    which nothing else has. A match by name says it where the name has no word that is not the operation's.
``told_by``
    By the name of a reading without which it can be bound, whether a call, by the other readings, tells its values
    apart. Where no call that was answered does, none is taken, and what it is about is not provided: nobody is accused
    by a guess.
``general``
    Whether it knows no options by other names than the contract's: where a form of the same operation knows more of
    them, that one is taken, right or wrong.
``beside``
    Whether a candidate may be this operation and another one as well, as a function that filters by k and by p is.
``settled``
    From the bound operation to the claims that it shows at one glance: conventions that no drawn call must have.
``judge``
    None: recognition draws calls and compares the results with the spec's formula. Operations without a formula
    bring a function from the bound operation to a ``Fit``.

A form only declares and calls. Which reading fits is found out by ``veriformer.verify.recognition``, on drawn inputs
against the formula: the one that fits everywhere, else the nearest, and that is told. It is written down as a ``Pin``
(plain data: operation, form, name of the candidate, readings, conventions), by which every other process, script or
adapter binds the same thing again without looking.

An argument without a default whose name a form does not know makes ``match`` raise ``UnknownArgument``, which ``roles``
and ``built`` do by themselves: recognition then tries what it may be, and gives the form a candidate that has it by a
usual name, or without it (``meanings.py``). What was found out is a reading of the pin, ``built_with_NAME`` or
``called_with_NAME``. A module that holds norms beside the weights of its operation makes ``match`` raise
``OtherParts``: recognition then gives the form a candidate with the identity in their places, which is the reading
``without_PART``.

Helpers: ``signatures.py`` (roles of parameters by their usual names), ``construction.py`` (instances from constructors
and config objects), ``holding.py`` (modules called with given weights, so that gradients flow to them).
"""

from veriformer.verify.forms.candidate import Candidate
from veriformer.verify.forms.form import Fit, Form, Match, NotOffered, Unfit
from veriformer.verify.forms.offering import as_operation
from veriformer.verify.forms.pin import Pin

__all__ = ["Candidate", "Fit", "Form", "Match", "NotOffered", "Pin", "Unfit", "as_operation"]
