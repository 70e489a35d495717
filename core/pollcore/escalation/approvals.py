"""Leave to use a credential: which kind a request needs, what it is bound to, how long a question about it stands.

Job: pure: the one rule of modes, the digests, the time of a question. Must not know: secrets, storage, keys, screens.
Source: spec G4, G6, G7, X7; invariants.md I14.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, Final

import msgspec

from pollcore.facts import (
    MINUTE,
    SECOND,
    BootMs,
    CallGrant,
    ContractUse,
    CredentialMode,
    Instant,
    Moment,
    Operation,
    Request,
    Session,
    deadline_left,
)

STATUS: Final = "status"
FETCH: Final = "fetch_result"
CANCEL: Final = "cancel"
FORCE_CANCEL: Final = "force_cancel"
RESUBMIT: Final = "resubmit"
"""Purposes: what a leave is for; no leave for one serves another."""

ANSWER_MS: Final = 120 * SECOND
"""How long a question about one call stands while a console is open on the store."""
GRANT_MS: Final = 120 * SECOND
"""How long an approved call may wait for its send, counted from when it is due; then it lapses and is asked anew."""
FETCH_GRANT_MS: Final = 15 * MINUTE
"""The same for a fetch: the command has to be given again."""
CONSOLE_BEAT_MS: Final = 10 * SECOND
CONSOLE_FRESH_MS: Final = 25 * SECOND
"""A console whose newest heartbeat is older counts as closed since that beat and one more."""
CONSOLES: Final = frozenset({"console", "demo"})
"""Kinds of process on which an operator can see a question."""
SHORT: Final = 16
STRICTNESS: Final = (CredentialMode.STANDING, CredentialMode.PER_SESSION, CredentialMode.PER_CALL)

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


class Approval(StrEnum):
    """What has to be granted before one request may go out."""

    NONE = "none"
    SESSION = "session"
    CALL = "call"


def stricter(mode: CredentialMode, least_mode: str) -> CredentialMode:
    """The mode in force: the credential's, or the contract's `least_mode` where that asks more often (G6)."""
    return max(mode, CredentialMode(least_mode), key=STRICTNESS.index)


def approval_needed(
    mode: CredentialMode | None, least_mode: str, use: ContractUse | None, purpose: str = STATUS
) -> Approval:
    """Which leave a request needs before it may be sent.

    Args:
        mode: Of the credential that goes with it; None: it goes without one.
        least_mode: What the contract demands of any credential.
        use: What its status requests are (X7); `action`: each needs its own leave, also without a credential. None:
            undecided, which is another question, asked before this one.
        purpose: `status`, or one of the actions; these have no run of the core behind them, so a session is none of
            theirs: each needs leave of its own.
    """
    if purpose == STATUS and use is ContractUse.ACTION:
        return Approval.CALL
    if mode is None:
        return Approval.NONE
    strict = stricter(mode, least_mode)
    if strict is CredentialMode.STANDING:
        return Approval.NONE
    return Approval.SESSION if strict is CredentialMode.PER_SESSION and purpose == STATUS else Approval.CALL


def short(digest: str | None) -> str:
    """The first characters of a digest, enough for people to compare."""
    return (digest or "none")[:SHORT]


def request_facts(request: Request) -> dict[str, Any]:
    """The exact request; its body as a digest of its own, the slot instead of a secret."""
    return {
        "method": request.method,
        "url": request.url,
        "headers": [list(pair) for pair in request.headers],
        "body": hashlib.sha256(request.body).hexdigest() if request.body is not None else None,
        "slot": [request.slot.credential, request.slot.kind, list(request.slot.names)] if request.slot else None,
        "origins": list(request.origins),
        "allow_http": request.allow_http,
    }


def call_digest(operation: Operation, request: Request, *, purpose: str, binding: str | None) -> str:
    """SHA-256 of one request of one operation: what is sent, for what, as which number, under which limits.

    Whatever moves makes another digest: the address, the contract, the credential or its origins (*binding*); for a
    status request also a limit, or one request more that was counted, so that a leave serves one at most. An action is
    not counted, and polls go on beside it: its limits are bound by the card that it is granted on.
    """
    op = operation
    limits = (op.max_status_requests, op.max_transport_failures, op.max_rate_limited, op.deadline_at, op.useful_until)
    counted = (op.status_requests_used + 1, *limits) if purpose == STATUS else None
    bound = {
        "operation": op.operation_id,
        "purpose": purpose,
        "counted": counted,
        "contract": op.contract_digest,
        "credential": op.credential,
        "binding": binding,
        "request": request_facts(request),
    }
    return hashlib.sha256(_ENCODER.encode(bound)).hexdigest()


def session_digest(credential: str, binding: str, owner: str, minutes: int, calls: int) -> str:
    """SHA-256 of what a session lets out: this credential as it is now, this run, so long, so often."""
    return hashlib.sha256(_ENCODER.encode([credential, binding, owner, minutes, calls])).hexdigest()


def grant_ends(operation: Operation, now: Moment, purpose: str) -> tuple[Instant, BootMs]:
    """Until when an approved call may be used: a while after it is due, never past the end of the wait; both clocks."""
    if purpose == FETCH:
        left = FETCH_GRANT_MS
    else:
        due = max(0, (operation.next_poll_at or now.wall) - now.wall)
        left = min(due + GRANT_MS, deadline_left(operation, now))
        if operation.useful_until is not None:
            left = min(left, operation.useful_until - now.wall)
    left = max(0, left)
    return Instant(now.wall + left), BootMs(now.boot + left)


def grant_is_usable(grant: CallGrant, digest: str, now: Moment) -> bool:
    """It is for the request of *digest*, and has time left by both clocks; the store asks the same once more."""
    if grant.digest != digest or grant.expires_at <= now.wall:
        return False
    return grant.boot_id != now.boot_id or grant.expires_boot > now.boot


def session_is_usable(session: Session, now: Moment) -> bool:
    """Time and calls are left, by both clocks; whether the run lives is another matter."""
    if session.calls_left <= 0 or session.until <= now.wall:
        return False
    return session.boot_id != now.boot_id or session.until_boot > now.boot


def console_is_open(beats: Iterable[Instant], now: Instant) -> bool:
    """Whether one of the newest heartbeats *beats* of consoles is fresh; one far ahead is of a clock set back since."""
    return any(abs(now - beat) <= CONSOLE_FRESH_MS for beat in beats)


class Spent(msgspec.Struct, frozen=True):
    """What was left of a question's time at one look; whether its time ran from there on."""

    at: Moment
    left_ms: int
    runs: bool

    def left_at(self, now: Moment) -> int:
        """ms left at a later look, by the boot clock; of another boot: as much as there was."""
        gone = now.boot - self.at.boot if self.runs and self.at.boot_id == now.boot_id else 0
        return max(0, self.left_ms - max(0, gone))


def answer_left(asked_at: Instant, consoles: Iterable[tuple[Instant, Instant]], now: Instant) -> int:
    """ms that a question still stands: ANSWER_MS less the time since it was asked during which a console was open.

    Args:
        consoles: Start and newest heartbeat of every console that is known, also of those that are closed.

    By the wall clock alone, so it stands still while a clock that was set back catches up: `Spent` is the other limit.
    """
    spans = []
    for started, beat in consoles:
        end = now if now - beat <= CONSOLE_FRESH_MS else min(now, Instant(beat + CONSOLE_BEAT_MS))
        if end > max(started, asked_at):
            spans.append((max(started, asked_at), end))
    seen, reached = 0, asked_at
    for start, end in sorted(spans):
        seen += max(0, end - max(start, reached))
        reached = max(reached, end)
    return max(0, ANSWER_MS - seen)
