"""Operations that a module offers under the names of the contract, and its other public functions and classes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType

from veriformer.verify.contract.signatures import AREA, POSITIONAL, SIGNATURES
from veriformer.verify.forms.frameworks import framework_of
from veriformer.verify.targets.kinds import FIRST_ARGUMENT, MODELS, TRAINERS

_OPERATIONS = (*POSITIONAL, *MODELS, *TRAINERS)


def by_name(module: ModuleType) -> list[str]:
    """Return the operations that a module provides with the contract's signature."""
    return [name for name in _OPERATIONS if _by_contract(module, name)]


def offers_any(kind: type) -> bool:
    """Return whether a class has a callable attribute by the name of an operation."""
    return any(callable(getattr(kind, name, None)) for name in _OPERATIONS)


def other_names(module: ModuleType, names: Iterable[str]) -> list[str]:
    """Return a module's public functions and classes that the named ones do not use, in the module's order.

    What an operation of the contract calls is part of it: the helpers of an adapter, and the code that it adapts.
    """
    used = _used(module, names)
    own = {name: x for name, x in vars(module).items() if _is_own(module, x)}
    return [name for name in own if not name.startswith("_") and name not in used]


def _by_contract(module: ModuleType, name: str) -> bool:
    """Return whether a module offers an operation as the contract has it: its own function, or one of an adapter's."""
    found = getattr(module, name, None)
    if not callable(found):
        return False
    if not _is_own(module, found) and not hasattr(module, "CLAIMS") and any(_is_own(module, x) for x in _all(module)):
        return False  # a tool that it imports for its own use
    if framework_of(found, module) and not hasattr(module, "CLAIMS"):
        return False  # a function over arrays, which the contract's are not: it is called through a form
    try:
        parameters = inspect.signature(found).parameters
    except (ValueError, TypeError):
        return True
    if name not in FIRST_ARGUMENT and any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters.values()):
        return True
    if name in AREA:
        known = SIGNATURES[name].parameters
        if any(p.default is p.empty and own not in known for own, p in parameters.items()):
            return False  # no call of the contract gives what it asks for
    first = {FIRST_ARGUMENT[name]} if name in FIRST_ARGUMENT else set()
    return {*POSITIONAL.get(name, ()), *first} <= parameters.keys()


def _all(module: ModuleType) -> list[object]:
    return list(vars(module).values())


def _is_own(module: ModuleType, x: object) -> bool:
    return callable(x) and getattr(x, "__module__", None) == module.__name__


def _used(module: ModuleType, names: Iterable[str]) -> set[str]:
    """Return these names, and those of the module that their code mentions, transitively."""
    seen: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += _mentioned(module, getattr(module, name, None))
    return seen


def _mentioned(module: ModuleType, thing: object) -> Iterator[str]:
    """Yield names of a module that occur in the code of a function or class, or in a function's defaults."""
    for function in _functions(thing):
        for code in _codes(function.__code__):
            yield from (name for name in code.co_names if name in vars(module))
    if inspect.isclass(thing):
        yield from (base.__name__ for base in thing.__mro__[1:] if _is_own(module, base))


def _functions(thing: object) -> Iterator[FunctionType]:
    if inspect.isclass(thing):
        for member in vars(thing).values():
            plain = getattr(member, "fget", None) or getattr(member, "__func__", member)
            if inspect.isfunction(plain):
                yield plain
        return
    plain = inspect.unwrap(thing) if callable(thing) else thing
    if inspect.isfunction(plain):
        yield plain


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
