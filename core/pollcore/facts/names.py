"""Every value that programs read: states, reasons, details, sources, event names, choices. One place, documented.

Job: spell them once. Must not know: what any of them leads to (that is decide, escalation and grants).
Source: spec groups S, T, X, E and design.md "Fixed". Spelling is a public interface.
"""

from __future__ import annotations

from enum import StrEnum


class Status(StrEnum):
    """Where an operation is; names the job's fate where it is known."""

    WAITING = "waiting"
    HELD = "held"
    AWAITING_APPROVAL = "awaiting_approval"
    ESCALATED = "escalated"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    CLOSED = "closed"

    @property
    def is_end(self) -> bool:
        """One of the five ends that have no way out."""
        return self in _ENDS


_ENDS = frozenset({Status.SUCCEEDED, Status.FAILED, Status.CANCELLED, Status.EXPIRED, Status.CLOSED})

TRANSITIONS: dict[Status, frozenset[Status]] = {
    Status.WAITING: frozenset({Status.HELD, Status.AWAITING_APPROVAL, Status.ESCALATED}) | _ENDS,
    Status.HELD: frozenset({Status.WAITING, Status.ESCALATED}) | _ENDS,
    Status.AWAITING_APPROVAL: frozenset({Status.WAITING, Status.ESCALATED, Status.CLOSED}),
    Status.ESCALATED: frozenset({Status.WAITING, Status.HELD, Status.AWAITING_APPROVAL}) | _ENDS,
    **{end: frozenset() for end in _ENDS},
}
"""Allowed ways from one status to another (staying is always allowed); design.md "Fixed"."""


class Verdict(StrEnum):
    """What one answer says, by the contract, about the job or about the exchange."""

    WAITING = "waiting"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    NEEDS_HUMAN = "needs_human"
    UNKNOWN = "unknown"
    TRANSPORT_FAILURE = "transport_failure"
    """The provider answered, but with 408, 425, 5xx or what the contract counts as such (B4, X5)."""
    RATE_LIMITED = "rate_limited"
    QUOTA_EXHAUSTED = "quota_exhausted"
    DENIED = "denied"
    """401 or 403 outside a grace."""
    INTEGRATION = "integration"
    """Unreadable, missing state, wrong job, contradiction ...: the detail says which."""

    @property
    def is_final(self) -> bool:
        """The job reached an end."""
        return self in (Verdict.SUCCEEDED, Verdict.FAILED, Verdict.CANCELLED, Verdict.EXPIRED)


class StopReason(StrEnum):
    """E1: why a wait stopped, or what a question asks."""

    DEADLINE_EXCEEDED = "deadline_exceeded"
    GUIDANCE_BEYOND_DEADLINE = "guidance_beyond_deadline"
    REQUEST_BUDGET_EXHAUSTED = "request_budget_exhausted"
    RATE_LIMITED = "rate_limited"
    UNKNOWN_STATE = "unknown_state"
    NEEDS_HUMAN = "needs_human"
    AUTHORIZATION_DENIED = "authorization_denied"
    PROVIDER_FAILURE = "provider_failure"
    DELIVERY_AMBIGUOUS = "delivery_ambiguous"
    INTEGRATION_FAILURE = "integration_failure"
    JOB_FAILED = "job_failed"
    JOB_CANCELLED = "job_cancelled"
    JOB_EXPIRED = "job_expired"
    USEFULNESS_ENDED = "usefulness_ended"
    CREDENTIAL_UNAVAILABLE = "credential_unavailable"
    APPROVAL_DENIED = "approval_denied"
    EXTENSION_REQUESTED = "extension_requested"
    OPERATOR_REQUEST = "operator_request"
    # questions that are no stops
    CALL_APPROVAL = "call_approval"
    SESSION_APPROVAL = "session_approval"
    MODE_CHANGE = "mode_change"
    FIRST_USE = "first_use"


LEAVE_THE_WAIT_GOING = frozenset({StopReason.EXTENSION_REQUESTED, StopReason.OPERATOR_REQUEST})
"""E7: questions on a running operation; a real stop takes the open question over."""


class StopDetail(StrEnum):
    """What exactly, beside the reason."""

    UNREADABLE = "unreadable"
    """The body is not what the contract's format asks for (not JSON, wrong encoding, truncated)."""
    STATE_MISSING = "state_missing"
    RESPONSE_TOO_LARGE = "response_too_large"
    RULE_FAILED = "rule_failed"
    """A rule of the contract raised on this answer; the explanation names the rule."""
    SUCCEEDED_WITHOUT_RESULT = "succeeded_without_result"
    SUCCESS_CONTRADICTED = "success_contradicted"
    WAITING_PAST_PROVIDER_EXPIRY = "waiting_past_provider_expiry"
    WRONG_JOB = "wrong_job"
    FOREIGN_ORIGIN = "foreign_origin"
    NOT_FOUND = "not_found"
    UNEXPECTED_STATUS = "unexpected_status"
    QUOTA_EXHAUSTED = "quota_exhausted"
    TERMINAL_CONTRADICTION = "terminal_contradiction"
    PROTOCOL_VIOLATION = "protocol_violation"
    """The exchange broke HTTP in a way that is no lost connection (status 999, header flood, unknown encoding)."""
    ADDRESS_MISSING = "address_missing"
    """The contract's status address needs a value that neither submission nor memory holds."""
    CONTRACT_MISSING = "contract_missing"
    """The snapshot that the operation was submitted under cannot be read."""
    SEALED_UNREADABLE = "sealed_unreadable"
    CREDENTIAL_MISSING = "credential_missing"
    KEYRING_LOCKED = "keyring_locked"
    KEYRING_TIMEOUT = "keyring_timeout"
    KEYRING_ABSENT = "keyring_absent"
    TOKEN_REFUSED = "token_refused"
    """What the keyring holds bought no usable token (K5)."""
    ORIGIN_NOT_PINNED = "origin_not_pinned"
    SECOND_SUBMISSION = "second_submission"
    """B2: a later operation for the same provider, account and job; sends nothing until granted."""
    PROVIDER_TRY = "provider_try"
    """B2: one request of `provider try`; a later wait for the job goes on with its count and asks nothing."""
    OUTCOME_UNKNOWN = "outcome_unknown"
    """The answer of an action was lost (O5)."""
    INTERNAL = "internal"
    """Our own assertion failed; the operation stops instead of going on wrongly."""


class DelaySource(StrEnum):
    """T5: where the time of the next request came from."""

    PROVIDER_RETRY_AFTER = "provider_retry_after"
    PROVIDER_POLL_HINT = "provider_poll_hint"
    LOCAL_BACKOFF = "local_backoff"
    MANUAL_EXTENSION = "manual_extension"
    SHARED_COOLDOWN = "shared_cooldown"
    ORIGIN_DOWN = "origin_down"
    PAUSED = "paused"
    CAPPED = "capped"
    TOKEN_PENDING = "token_pending"


class FaultKind(StrEnum):
    """Why a request brought no usable HTTP answer."""

    CONNECTION_REFUSED = "connection_refused"
    DNS = "dns"
    TLS = "tls"
    CONNECT_TIMEOUT = "connect_timeout"
    TIMEOUT = "timeout"
    RESET = "reset"
    CUT_OFF = "cut_off"
    TOO_LARGE = "too_large"
    """More bytes, headers or decompressed bytes than allowed: integration_failure, response_too_large (X5)."""
    PROTOCOL = "protocol"
    """Broken HTTP: integration_failure, protocol_violation."""
    FOREIGN_ORIGIN = "foreign_origin"
    """The address lies outside the pinned origins: nothing was sent (K3)."""
    INSECURE = "insecure"
    """http beyond loopback without allow_http: nothing was sent (H2)."""
    NOT_SENT = "not_sent"
    """The worker was paused between commit and send, or is ending: the charge is burned, no byte left."""
    ANSWER_LOST = "answer_lost"
    """A crash between send and record: found at the next claim (B4)."""


class ChoiceKind(StrEnum):
    """What an operator can choose on a card (spec, table of group E)."""

    EXTEND = "extend"
    CANCEL_AT_PROVIDER = "cancel_at_provider"
    INSPECT = "inspect"
    CLOSE = "close"
    REJECT = "reject"
    HOLD = "hold"
    END_HOLD = "end_hold"
    ADOPT_CONTRACT = "adopt_contract"
    CHECK_ONCE = "check_once"
    CHECK_AGAIN = "check_again"
    RESUBMIT = "resubmit"
    USE_OTHER_CREDENTIAL = "use_other_credential"
    CHECK_ONCE_WITH_ROTATED_CREDENTIAL = "check_once_with_rotated_credential"
    ACCEPT_UNVALIDATED_RESULT = "accept_unvalidated_result"
    ASK_AGAIN = "ask_again"
    APPROVE_ONCE = "approve_once"
    APPROVE_SESSION = "approve_session"
    APPROVE = "approve"
    DENY = "deny"


LOWERS_AUTHORITY = frozenset({ChoiceKind.CLOSE, ChoiceKind.REJECT, ChoiceKind.HOLD, ChoiceKind.DENY})
"""G5: what anyone may do, also from the command line."""


class EventName(StrEnum):
    """Names of audit events (the `event` of `audit show --json`)."""

    SUBMITTED = "submitted"
    SENT = "sent"
    """The intent: counted and committed right before a request may leave."""
    POLLED = "polled"
    """An answer was read and decided."""
    FAULTED = "faulted"
    """A request brought no usable answer."""
    ANSWER_LOST = "answer_lost"
    SCHEDULED = "scheduled"
    """The next request was moved without one having been sent (cool-down, origin down, cap, release)."""
    STOPPED = "stopped"
    """A stop without a request: deadline, usefulness, credential."""
    ESCALATED = "escalated"
    EXTENSION_REQUESTED = "extension_requested"
    QUESTION_OPENED = "question_opened"
    GRANTED = "granted"
    GRANT_REFUSED = "grant_refused"
    REJECTED = "rejected"
    CLOSED = "closed"
    TRIED = "tried"
    """A `provider try` ended: one request, what a wait would have decided, and that nobody waits."""
    HELD = "held"
    HOLD_ENDED = "hold_ended"
    APPROVAL_EXPIRED = "approval_expired"
    """Nobody answered a question about one call in its time: unseen, or seen and not answered (G7); no denial."""
    SESSION_ENDED = "session_ended"
    """A session of a credential was ended before its time and calls were."""
    PAUSED = "paused"
    CANCEL_SENT = "cancel_sent"
    CANCEL_ANSWERED = "cancel_answered"
    FORCE_CANCEL_ANSWERED = "force_cancel_answered"
    RESUBMITTED = "resubmitted"
    ACTION_LOST = "action_lost"
    """The process that carried an action out ended before the answer was recorded: its outcome is unknown (O5)."""
    RESULT_FETCHED = "result_fetched"
    RESULT_REVEALED = "result_revealed"
    CLOCK_STEP = "clock_step"
    CREDENTIAL_REFUSED = "credential_refused"
    CREDENTIAL_CHANGED = "credential_changed"
    CONTRACT_DECIDED = "contract_decided"
    """X7: an operator said what the status requests under a contract are."""
    CONTRACT_SEEN = "contract_seen"
    """G5: an operator has opened a contract's text in the console."""
    ARCHIVED = "archived"
    """Records of ended operations went out of the store into an archive file."""
    AUDIT_KEYS = "audit_keys"
    """Keys of the audit were deleted or moved."""
    LATE_RESULT = "late_result"
    """A late owner's answer: recorded, changes nothing (O2)."""


class CredentialMode(StrEnum):
    """G6: how often a human is asked."""

    STANDING = "standing"
    PER_SESSION = "per_session"
    PER_CALL = "per_call"

    def is_looser_than(self, other: CredentialMode) -> bool:
        """G2: a human would be asked less often than under *other*."""
        order = list(CredentialMode)
        return order.index(self) < order.index(other)


class ContractUse(StrEnum):
    """X7: what an operator said of the status requests under one contract digest, once."""

    READ_ONLY = "read_only"
    ACTION = "action"
    """Each status request needs its own approval."""


BY_ELAPSED_TIME = "by elapsed time, the wall clock was set back"
"""T9: note of a stop for a deadline that the wall clock alone would not bear out."""
FORCE = "force"
"""`Choice.step` of a `cancel_at_provider` that sends the contract's `[cancel.force]` (R35)."""


class ActionKind(StrEnum):
    """O5: requests that are no status requests; each has a record of its own."""

    CANCEL = "cancel"
    FORCE_CANCEL = "force_cancel"
    """R35: the documented stronger cancel, after one that did not end the job."""
    FETCH_RESULT = "fetch_result"
    RESUBMIT = "resubmit"


class ActionOutcome(StrEnum):
    """How an action ended; `unknown` is never repeated by itself."""

    INTENDED = "intended"
    DONE = "done"
    REFUSED = "refused"
    UNKNOWN = "unknown"
