"""Short forms of the words that stand in columns: what 80 cells show whole, one table, explained by the help.

Job: pure: status, reason and detail -> one short, understandable word; the table as pairs for the help. Must not know:
widgets, who draws. Programs read the full names (`list --json`, the card, the detail); only columns shorten them.

Source: spec E1, V1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.cells import cell_len

from pollconsole import words
from pollcore.facts import Status, StopDetail, StopReason

STATUS: Final[dict[Status, str]] = {Status.AWAITING_APPROVAL: "approval"}
"""The one status whose word no column has room for: in the table, whatever its width, this stands for it."""
REASON: Final[dict[StopReason, str]] = {
    StopReason.DEADLINE_EXCEEDED: "deadline",
    StopReason.GUIDANCE_BEYOND_DEADLINE: "told too late",
    StopReason.REQUEST_BUDGET_EXHAUSTED: "no requests",
    StopReason.RATE_LIMITED: "rate limit",
    StopReason.UNKNOWN_STATE: "unknown state",
    StopReason.NEEDS_HUMAN: "needs human",
    StopReason.AUTHORIZATION_DENIED: "no access",
    StopReason.PROVIDER_FAILURE: "failures",
    StopReason.DELIVERY_AMBIGUOUS: "maybe sent",
    StopReason.INTEGRATION_FAILURE: "odd answer",
    StopReason.JOB_FAILED: "job failed",
    StopReason.JOB_CANCELLED: "cancelled",
    StopReason.JOB_EXPIRED: "job expired",
    StopReason.USEFULNESS_ENDED: "no use now",
    StopReason.CREDENTIAL_UNAVAILABLE: "no credential",
    StopReason.APPROVAL_DENIED: "not approved",
    StopReason.EXTENSION_REQUESTED: "asks for more",
    StopReason.OPERATOR_REQUEST: "by operator",
    StopReason.CALL_APPROVAL: "one call",
    StopReason.SESSION_APPROVAL: "session",
    StopReason.MODE_CHANGE: "looser mode",
    StopReason.FIRST_USE: "first use",
}
"""At most `REASON_CELLS` each."""
REASON_CELLS: Final = 13
DETAIL: Final[dict[StopDetail, str]] = {
    StopDetail.RESPONSE_TOO_LARGE: "too large",
    StopDetail.SUCCEEDED_WITHOUT_RESULT: "no result",
    StopDetail.SUCCESS_CONTRADICTED: "contradicted",
    StopDetail.WAITING_PAST_PROVIDER_EXPIRY: "past its expiry",
    StopDetail.UNEXPECTED_STATUS: "HTTP status",
    StopDetail.QUOTA_EXHAUSTED: "out of quota",
    StopDetail.TERMINAL_CONTRADICTION: "two endings",
    StopDetail.PROTOCOL_VIOLATION: "broken HTTP",
    StopDetail.ADDRESS_MISSING: "no address",
    StopDetail.CONTRACT_MISSING: "no contract",
    StopDetail.SEALED_UNREADABLE: "sealed text",
    StopDetail.CREDENTIAL_MISSING: "not stored",
    StopDetail.KEYRING_LOCKED: "keyring locked",
    StopDetail.KEYRING_TIMEOUT: "keyring hangs",
    StopDetail.KEYRING_ABSENT: "no keyring",
    StopDetail.ORIGIN_NOT_PINNED: "not pinned",
    StopDetail.SECOND_SUBMISSION: "second wait",
    StopDetail.OUTCOME_UNKNOWN: "outcome unknown",
}
"""Only those that are shortened; another one is its own words (`wrong_job`: `wrong job`)."""


def status(of: Status) -> str:
    """The word of a status in the table: one at every width."""
    return STATUS.get(of, words.STATUS[of][1])


def reason(of: StopReason, cells: int) -> str:
    """The name of a reason, or its short form where *cells* do not hold it."""
    return of.value if cell_len(of.value) <= cells else REASON[of]


def detail(of: StopDetail) -> str:
    """The short form of a detail."""
    return DETAIL.get(of) or of.value.replace("_", " ")


def explained() -> Iterator[tuple[str, str]]:
    """Every short form and the full name that it stands for, for the help."""
    for shown, name in STATUS.items():
        yield name, words.STATUS[shown][1]
    yield from ((short, full.value) for full, short in REASON.items())
    yield from ((short, full.value) for full, short in DETAIL.items())
