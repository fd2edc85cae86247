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
STATUS_STYLES: dict[Status, StatusStyle] = {
    look.status: look
    for look in (
        StatusStyle(
            Status.HARNESS_ERROR,
            "‼",
            "harness error",
            "shout",
            "The suite itself broke: the verdict of the run is invalid.",
        ),
        StatusStyle(Status.CRASH, "✸", "crash", "bad", "The implementation ended its process, or ran out of memory."),
        StatusStyle(Status.TIMEOUT, "◔", "timeout", "bad", "The implementation gave no answer in time."),
        StatusStyle(Status.FAIL, "✗", "fail", "bad", "A counterexample was found."),
        StatusStyle(
            Status.UNEXPECTED_PASS,
            "↯",
            "unexpected pass",
            "bad",
            "A waived failure no longer happens: the waiver must go.",
        ),
        StatusStyle(
            Status.BLOCKED, "⊘", "blocked", "muted-strong", "Not judged: a requirement that it rests on does not hold."
        ),
        StatusStyle(
            Status.VACUOUS,
            "○",
            "vacuous",
            "warn",
            "Ran, but too few examples could tell right from wrong: shows nothing.",
        ),
        StatusStyle(
            Status.ADVICE,
            "△",
            "advice",
            "warn",
            "A lesser requirement is not met: results could be more precise, or refusals more helpful.",
        ),
        StatusStyle(
            Status.KNOWN_FAIL, "⚑", "known fail", "warn", "Fails as waived: with a reason, a link and an expiry."
        ),
        StatusStyle(
            Status.DEVIATION,
            "≠",
            "deviation",
            "info",
            "Follows another convention than the contract's, as it claims to.",
        ),
        StatusStyle(Status.PASS, "✓", "pass", "good", "Every example lies within its derived bound."),
        StatusStyle(Status.NOT_APPLICABLE, "∅", "not applicable", "muted", "The implementation promises nothing here."),
        StatusStyle(
            Status.NOT_PROVIDED,
            "–",
            "not provided",
            "muted",
            "The implementation lacks the operation, or an argument that the requirement needs.",
        ),
    )
}

SHOWN = frozenset({Status.PASS, Status.DEVIATION})
"""Statuses that show something in favour of an implementation; what is neither this nor a violation shows nothing."""


def severity(status: Status) -> int:
    """Position in the order of severity, 0 the worst."""
    return list(STATUS_STYLES).index(status)
