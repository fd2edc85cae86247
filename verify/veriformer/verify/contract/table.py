"""The contract as the README shows it: one table per area, one row per operation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from veriformer.verify.contract.signatures import STUBS


def call(stub: Callable[..., Any]) -> str:
    """How an operation is called: its name, its arguments and their defaults, as Python writes them."""
    signature = inspect.signature(stub)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    arguments = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    return stub.__name__ + arguments.replace("'", '"').replace("e-0", "e-")


def meaning(stub: Callable[..., Any]) -> str:
    """The first line of its docstring, with a vertical bar safe for a table."""
    return str(inspect.getdoc(stub)).partition("\n")[0].replace("|", "\\|")


def table() -> str:
    """All areas in the contract's order, in Markdown."""
    blocks = (
        "\n".join((f"| {area} | |", "|---|---|", *(f"| `{call(stub)}` | {meaning(stub)} |" for stub in stubs.values())))
        for area, stubs in STUBS.items()
    )
    return "\n\n".join(blocks)


if __name__ == "__main__":
    print(table())
