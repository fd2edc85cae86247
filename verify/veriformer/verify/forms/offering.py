"""A call under the contract's signature, reduced to the arguments that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from typing import Any

from veriformer.verify.contract.signatures import OPTIONAL, POSITIONAL, SIGNATURES
from veriformer.verify.forms.form import NotOffered, Unfit


def as_operation(
    operation: str,
    call: Callable[..., Any],
    options: Collection[str] = (),
    *,
    required: Collection[str] = (),
    defaults: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Return ``call`` with the operation's signature: the contract's positional arguments, and the named options.

    options: optional arguments of the contract that ``call`` takes; every other one is left out of the signature.
    required: those among them without a default. defaults: where the code's default is not the contract's.
    """
    stub = SIGNATURES[operation].parameters
    taken = [stub[name] for name in stub if name in POSITIONAL[operation] or name in {*options, *required}]
    taken += [stub[name] for name in stub if name not in OPTIONAL.get(operation, {}) and stub[name] not in taken]
    shown = [p.replace(default=_default(p, required, defaults or {})) for p in taken]
    order = list(stub)
    keyword = [
        p.replace(kind=p.KEYWORD_ONLY) if p.default is p.empty and _after_default(p, shown) else p for p in shown
    ]
    signature = inspect.Signature(sorted(keyword, key=lambda p: (p.kind, order.index(p.name))))

    def function(*arguments: Any, **given: Any) -> Any:
        bound = signature.bind(*arguments, **given)
        bound.apply_defaults()
        try:
            return call(**bound.arguments)
        except Unfit as reason:  # an instance of other sizes may be another thing
            raise NotOffered(str(reason)) from reason

    function.__name__ = function.__qualname__ = operation
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def _default(p: inspect.Parameter, required: Collection[str], defaults: Mapping[str, Any]) -> Any:
    return p.empty if p.name in required else defaults.get(p.name, p.default)


def _after_default(p: inspect.Parameter, shown: list[inspect.Parameter]) -> bool:
    """Return whether a parameter without default would come by position after one that has a default."""
    before = shown[: shown.index(p)]
    return p.kind is p.POSITIONAL_OR_KEYWORD and any(q.default is not q.empty and q.kind is p.kind for q in before)
