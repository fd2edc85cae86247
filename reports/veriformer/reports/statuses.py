"""Signs, words and colours of statuses, so that none of the three is needed to tell two apart."""

from __future__ import annotations

from dataclasses import dataclass

from veriformer.verify.results import VIOLATIONS, Status


@dataclass(frozen=True)
class StatusStyle:
    """A status as a reader meets it.

    tone: the name of its colour in the style sheet. meaning: one sentence for the legend.
    """

    status: Status
    sign: str
    word: str
    tone: str
    meaning: str

    @property
    def violated(self) -> bool:
        """Return whether it makes the run fail."""
        return self.status in VIOLATIONS


# In the order of severity: of the dtypes that share a cell, the first listed here is the one to show first.
_LOOKS = (
    (Status.HARNESS_ERROR, "‼", "shout", "The suite itself broke: the verdict of the run is invalid."),
    (Status.CRASH, "✸", "bad", "The implementation ended its process, or ran out of memory."),
    (Status.TIMEOUT, "◔", "bad", "The implementation gave no answer in time."),
    (Status.FAIL, "✗", "bad", "A counterexample was found."),
    (Status.UNEXPECTED_PASS, "↯", "bad", "A waived failure no longer happens: the waiver must go."),
    (Status.BLOCKED, "⊘", "muted-strong", "Not judged: a requirement that it rests on does not hold."),
    (Status.VACUOUS, "○", "warn", "Ran, but too few examples could tell right from wrong: shows nothing."),
    (
        Status.ADVICE,
        "△",
        "warn",
        "A lesser requirement is not met: results could be more precise, or refusals more helpful.",
    ),
    (Status.KNOWN_FAIL, "⚑", "warn", "Fails as waived: with a reason, a link and an expiry."),
    (Status.DEVIATION, "≠", "info", "Follows another convention than the contract's, as it claims to."),
    (Status.PASS, "✓", "good", "Every example lies within its derived bound."),
    (Status.NOT_APPLICABLE, "∅", "muted", "The implementation promises nothing here."),
    (
        Status.NOT_PROVIDED,
        "–",
        "muted",
        "The implementation lacks the operation, or an argument that the requirement needs.",
    ),
)
STATUS_STYLES: dict[Status, StatusStyle] = {
    status: StatusStyle(status, sign, status.value.replace("-", " "), tone, meaning)
    for status, sign, tone, meaning in _LOOKS
}

SHOWN = frozenset({Status.PASS, Status.DEVIATION})
"""Statuses that show something in favour of an implementation; what is neither this nor a violation shows nothing."""


def severity(status: Status) -> int:
    """Return the position in the order of severity, 0 the worst."""
    return list(STATUS_STYLES).index(status)
