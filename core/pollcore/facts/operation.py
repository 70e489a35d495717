"""The operation: one wait for one provider job, the durable record that everything else refers to.

Job: its fields, units and derived figures. Must not know: SQL, contracts, who changes it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore.facts.instant import BootMs, Instant, Moment
from pollcore.facts.names import ActionKind, ActionOutcome, DelaySource, Status, StopDetail, StopReason
from pollcore.facts.provider import HttpFact, Memory, ResultPointer


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """What was handed over and never changes (S7). `submitted` in contract expressions, without the sealed parts."""

    provider: str
    """The name it was submitted under: a configured instance or a contract."""
    account: str
    job_id: str
    base_url: str | None = None
    params: dict[str, Any] = {}
    status_url: str | None = None
    """Given by the provider, verbatim; sealed at rest when it has a query."""
    expected_states: tuple[str, ...] = ()
    request_fingerprint: str | None = None
    idempotency_key: str | None = None
    """Sealed at rest."""
    caller: str | None = None
    os_user: str = ""
    label: str | None = None
    resubmit_of: str | None = None


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """The record. All times are Instants (ms, UTC) unless named boot; all spans ms.

    *version* counts limits, contract, credential, question and status: what a grant is bound to (G4).
    *change* counts every write: what an optimistic write is bound to. *epoch* is the fencing number of leases (O2).
    """

    operation_id: str
    submitted: Submitted
    status: Status
    version: int = 1
    change: int = 0
    epoch: int = 0
    lease_owner: str | None = None
    lease_until: Instant | None = None
    """For people; takeover uses the boot clock and the owner's lock file (reliability L3, L4)."""

    contract_digest: str
    credential: str | None = None

    started_at: Instant
    submitted_at: Instant
    boot_id: str
    """The boot that the *_boot fields belong to."""
    deadline_at: Instant
    deadline_boot: BootMs
    """T9: what was left at submission on the clock that runs during suspend; the nearer of both counts."""
    useful_until: Instant | None = None
    provider_expires_at: Instant | None = None

    max_status_requests: int
    status_requests_used: int = 0
    max_transport_failures: int
    transport_failures_used: int = 0
    max_rate_limited: int
    rate_limited_used: int = 0

    completed_polls: int = 0
    rate_limited_in_a_row: int = 0
    next_poll_at: Instant | None = None
    due_boot: BootMs | None = None
    """When anything is next due for this operation (poll, deadline, usefulness, end of a hold); None: nothing."""
    delay_source: DelaySource | None = None
    guidance_until: Instant | None = None
    """Open guidance: no request before it, whatever was granted (T5)."""

    hold_until: Instant | None = None
    holds_used: int = 0
    check_once: bool = False
    """The next answer is a granted check beyond a stop: it goes on only if the answer is known and limits are left."""
    cancel_granted: bool = False
    """An operator granted a cancel: a cancelled end raises no escalation then."""
    extensions_used: int = 0

    last_known_state: str | None = None
    last_http: HttpFact | None = None
    last_fault: str | None = None
    """FaultKind of the newest request when it brought no answer; its sent_at is `last_fault_at`."""
    last_fault_at: Instant | None = None
    last_fault_may_have_been_sent: bool = False
    memory: Memory = Memory()

    stop_reason: StopReason | None = None
    stop_detail: StopDetail | None = None
    stop_explanation: str | None = None
    result: ResultPointer | None = None

    @property
    def requests_left(self) -> int:
        """Status requests that may still be reserved."""
        return self.max_status_requests - self.status_requests_used


def deadline_left(operation: Operation, now: Moment) -> int:
    """ms until the deadline, by whichever clock is nearer (T9); zero or less: passed."""
    wall = operation.deadline_at - now.wall
    if operation.boot_id != now.boot_id:
        return wall
    return min(wall, operation.deadline_boot - now.boot)


def stop_in_force(operation: Operation) -> StopReason | None:
    """The stop at which it stands; None: it waits, or succeeded.

    A granted check beyond a stop keeps that stop in the record until its answer is known, but is a wait.
    """
    return None if operation.check_once else operation.stop_reason


def last_heard_at(operation: Operation) -> Instant | None:
    """The newest time at which a request of it came to an end; None: none did."""
    http = operation.last_http
    known = (http.answered_at if http else None, operation.last_fault_at, operation.memory.changed_at)
    return max((at for at in known if at is not None), default=None)


def end_seen_at(operation: Operation) -> Instant | None:
    """When the end of the job came to be known: nothing is asked after it. None: it is not known to have ended (a wait
    that an operator closed leaves it running), or no time is."""
    if not operation.status.is_end or operation.status is Status.CLOSED:
        return None
    return last_heard_at(operation)


LOST_WORDS: Final = {
    ActionKind.CANCEL: "a granted cancel",
    ActionKind.FORCE_CANCEL: "a granted force-cancel",
    ActionKind.FETCH_RESULT: "a fetch of the result",
    ActionKind.RESUBMIT: "a granted resubmission",
}


def lost_words(kind: str) -> str:
    """O5: what is told of an action whose process ended before its answer was recorded."""
    what = LOST_WORDS[ActionKind(kind)] if kind in LOST_WORDS else f"an action ({kind})"
    return f"{what}: outcome unknown, it may not have left"


def lost_actions(operation: Operation) -> tuple[str, ...]:
    """A sentence for each kind of action of *operation* whose outcome nobody knows."""
    return tuple(lost_words(kind) for kind in operation.memory.unknown_actions)


def useful_left(operation: Operation, now: Moment) -> int | None:
    """ms until `useful_until`; None: the workflow named no such time."""
    return None if operation.useful_until is None else operation.useful_until - now.wall


class Intent(msgspec.Struct, frozen=True):
    """One charge of one operation: the n-th counted request, committed before it may leave (B3)."""

    operation_id: str
    n: int
    request: int
    step: str
    epoch: int
    at: Instant
    boot: BootMs
    boot_no: int = 0
    """Which boot *boot* belongs to, as the store numbers them; 0: not known any more."""


class ActionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One cancel, force-cancel, fetch or resubmit: intent durable before the effect, never repeated by itself (O5)."""

    action_id: str
    operation_id: str
    kind: ActionKind
    outcome: ActionOutcome
    at: Instant
    answered_at: Instant | None = None
    http_code: int | None = None
    detail: str | None = None
    grant_id: str | None = None
