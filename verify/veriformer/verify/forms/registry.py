"""Every form there is: those of this package by their place, those of others by the entry point group."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from veriformer.verify import forms
from veriformer.verify.forms.form import Form

GROUP = "veriformer.forms"


class UnknownFormError(Exception):
    """No form has this name."""


@functools.cache
def every_form() -> dict[str, Form]:
    """Return all forms by name, those of installed packages first. Raises ImportError where one cannot be imported."""
    found: dict[str, Form] = {}
    for entry in entry_points(group=GROUP):
        for form in _forms_of(entry.load(), entry.value):
            found.setdefault(form.name, form)
    for form in _own():
        found.setdefault(form.name, form)
    return found


def form_named(name: str) -> Form:
    """Return the form of that name. Raises UnknownFormError with the names that there are."""
    known = every_form()
    if name not in known:
        raise UnknownFormError(f"form {name!r}: unknown; there are {', '.join(known)}")
    return known[name]


def _own() -> Iterator[Form]:
    for folder in pkgutil.iter_modules(forms.__path__, f"{forms.__name__}."):
        if folder.ispkg:
            package = importlib.import_module(folder.name)
            for file in pkgutil.iter_modules(package.__path__, f"{folder.name}."):
                yield from _forms_of(importlib.import_module(file.name), file.name)


def _forms_of(found: Any, where: str) -> tuple[Form, ...]:
    if isinstance(found, ModuleType):
        found = getattr(found, "FORMS", None) or getattr(found, "FORM", ())
    listed = found if isinstance(found, tuple) else (found,)
    if not all(isinstance(form, Form) for form in listed):
        raise ImportError(f"{where}: expected a Form or a tuple of them as FORM or FORMS, got {found!r}")
    return listed
