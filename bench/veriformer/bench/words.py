"""A difference between two polynomials, in words: how much more, of which growth, and by which operators."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from veriformer.bench.polynomials import Polynomial

Exponents = tuple[int, ...]
MODEL = "causal_lm"


def term(names: Iterable[str], exponents: Exponents, coefficient: Fraction | int = 1) -> str:
    """Format a term, such as ``8*n**2*d``."""
    letters = [name if e == 1 else f"{name}**{e}" for name, e in zip(names, exponents, strict=True) if e]
    if coefficient == 1 and letters:
        return "*".join(letters)
    return "*".join([str(coefficient), *letters])


def instead(names: Iterable[str], exponents: Exponents, measured: Fraction | int, claimed: Fraction | int) -> str:
    """Describe a term and what it should be; either may be nothing."""
    names = tuple(names)
    is_, should = (term(names, exponents, coefficient) for coefficient in (measured, claimed))
    if not measured:
        return f"the {should} of the formula is missing"
    return f"{is_} instead of {should}" if claimed else f"{is_} that the formula does not have"


def leading(measured: Polynomial) -> str:
    """Return the term of largest degree with a positive coefficient: the growth of a positive quantity."""
    added = [exponents for exponents, c in measured.terms.items() if c > 0]
    top = max(added, key=lambda exponents: (sum(exponents), exponents))
    return term(measured.names, top, measured.terms[top])


def beyond(measured: Polynomial, envelope: Iterable[Exponents]) -> dict[Exponents, Fraction]:
    """Return the terms that outgrow every term of the envelope in some letter."""
    limits = list(envelope)
    return {
        exponents: c
        for exponents, c in measured.terms.items()
        if any(exponents) and not any(all(e <= most for e, most in zip(exponents, x, strict=True)) for x in limits)
    }


def growth(operation: str, quantity: str, measured: Polynomial, excess: dict[Exponents, Fraction], most: str) -> str:
    """Describe the term that outgrows the formula, with its cause where the letters tell it."""
    top = max(excess, key=lambda exponents: (sum(exponents), exponents))
    said = term(measured.names, top, excess[top])
    unit = "" if "bytes" in quantity else f" {quantity}"
    more = f"{said} more bytes than the formula" if not unit else f"{said} more{unit} than the formula"
    return f"{more}: {_cause(operation, quantity, dict(zip(measured.names, top, strict=True)), measured, most)}"


def _cause(operation: str, quantity: str, powers: dict[str, int], measured: Polynomial, most: str) -> str:
    has = {name for name, power in powers.items() if power}
    if "m" in has:
        return "it grows with max_length, not with length"
    if operation == "kv_cache" and "W" in measured.names and has & {"t", "W"}:
        return _of_window(quantity, has)
    if "s" in has and "P" in measured.names:
        return "it grows with the number of steps"
    if operation == MODEL and powers.get("n", 0) >= 3:
        return "every prefix is computed by itself"
    if operation == MODEL and max(powers.get("t", 0), powers.get("s", 0) - 1) >= 2:
        return "the tokens before are computed again at every step"
    if operation == "kv_cache" and "t" in has:
        return "it grows with the length so far, the cache copies itself"
    if "slice_backward" in most or "select_backward" in most:
        return "the gradient of every slice is written at full length"
    attends = "attention" in operation or operation in ("transformer_block", MODEL)
    if attends and ({"n_q", "n_k"} <= has or powers.get("n", 0) >= 2):
        return "the scores are materialised"
    if attends and {"G", "R"} <= has and has & {"n_k", "t"}:
        return "keys and values are repeated for every query head"
    letters = ", ".join(f"{powers[name]} in {name}" for name in measured.names if powers.get(name))
    return f"a term of degree {letters} that the formula does not have"


def _of_window(quantity: str, has: set[str]) -> str:
    """Describe the excess work of a cache with a window."""
    if quantity == "kept bytes":
        return "rows that no window shows any more are kept"
    return "the cache copies itself" if "t" in has else "the window is copied at every step"


def ratio(measured: Fraction, predicted: Fraction) -> str:
    """Return by how much one number exceeds another, such as ``1.5 times``."""
    return f"{float(measured / predicted):.3g} times"


def operators(shares: dict[str, Fraction]) -> str:
    """Return the operators with most of a quantity, most first, down to a tenth of the first."""
    first = sorted((share, name) for name, share in shares.items() if share > 0)[::-1][:3]
    return ", ".join(name for share, name in first if share * 10 >= first[0][0])
