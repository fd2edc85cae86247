"""The keys of the ``CLAIMS`` dict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from veriformer.spec.suggestion import meant, some
from veriformer.verify.targets.error import TargetError

KEYS = ("dtypes", "devices", "not_provided", "provides", "conventions")


def check_keys(claims: object) -> None:
    """Raise TargetError for a key of ``CLAIMS`` that means nothing: what it claims would count for nothing."""
    if isinstance(claims, Mapping):
        for key in claims:
            check_key("CLAIMS", key, KEYS)


def check_key(where: str, key: object, known: Iterable[str]) -> None:
    """Raise TargetError unless a key is known there, with the known keys that come close."""
    known = list(known)
    if key not in known:
        word = str(key)
        raise TargetError(f"{where}[{word!r}]: unknown key{meant(word, known)} (known keys: {some(known)})")
