"""Arguments that are refused: numbers that click lets pass, and suggestions for what it does not."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import click

from veriformer.spec.suggestion import files_beside, meant

_QUOTED = re.compile(r"'(.*?)'")


class FiniteRange(click.FloatRange):
    """Numbers of a range, NaN and infinities not among them: nothing ends after such a time."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number. Raises click.BadParameter."""
        found = super().convert(value, param, ctx)
        return found if math.isfinite(found) else self.fail(f"expected a finite number, got {value}", param, ctx)


def suggesting(error: click.ClickException) -> click.ClickException:
    """Return the error with what may have been meant, where a choice or a file is not known."""
    quoted = _QUOTED.search(error.message)
    if not isinstance(error, click.BadParameter) or error.param is None or quoted is None:
        return error
    close = meant(quoted[1], _known(error.param.type, quoted[1]))
    if not close or "did you mean" in error.message:
        return error
    return click.BadParameter(error.message.rstrip(".") + close, error.ctx, error.param, error.param_hint)


def _known(kind: object, word: str) -> list[str]:
    """Return the words that a parameter of this type takes, or the files beside one that is not there."""
    if isinstance(kind, click.Choice):
        return [str(one) for one in kind.choices]
    return files_beside(word, "*") if isinstance(kind, click.Path) and not Path(word).exists() else []
