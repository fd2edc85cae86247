"""The keys of the ``CLAIMS`` dict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from veriformer.spec.suggestion import meant, some
from veriformer.verify.targets.error import TargetError

KEYS: Mapping[str, str] = {
    "dtypes": 'Formats in which results are promised: a list (`["fp32", "bf16"]`), or by operation a list, '
    'with `"*"` for all others. In any other format nothing is judged.',
    "devices": 'Devices on which results are promised: a list (`["cuda"]`).',
    "not_provided": "By operation, by `operation.argument` or by `operation.gradient`, the reason why it is "
    'left out: it is not judged (`{"attention.gradient": "inference only"}`).',
    "provides": "By operation, features that are provided whatever the probe finds: calls that have them are "
    "judged, and a refusal is a failure.",
    "conventions": "By convention, the choice that is followed. It is checked as claimed, and shown as a "
    'deviation where the contract has another (`{"rope.pairing": "half"}`). An optional '
    'argument that a signature hides is claimed likewise (`{"rms_norm.eps": 1e-5}`), and so is'
    ' how recognised code is called (`{"attention.mask": "inverted"}`).',
}
"""Keys of ``CLAIMS``, each with its meaning."""


def check_keys(claims: object) -> None:
    """Raise TargetError for a key of ``CLAIMS`` that means nothing: what it claims would count for nothing."""
    for key in claims if isinstance(claims, Mapping) else ():
        inside = f"; a convention stands inside: {{'conventions': {{{key!r}: …}}}}" if "." in str(key) else ""
        check_key("CLAIMS", key, KEYS, inside)


def check_key(where: str, key: object, known: Iterable[str], advice: str = "") -> None:
    """Raise TargetError unless a key is known there, with the known keys that come close."""
    known = list(known)
    if key not in known:
        word = str(key)
        raise TargetError(f"{where}[{word!r}]: unknown key{meant(word, known)} (known keys: {some(known)}){advice}")
