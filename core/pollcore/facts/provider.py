"""Facts from the provider's side: what one request brought.

Job: the HTTP fact and the job fact, kept apart (S1). Must not know: what is decided about them.
"""

from __future__ import annotations

from typing import Any

import msgspec

from pollcore.facts.instant import Instant
from pollcore.facts.names import FaultKind, StopDetail, Verdict


class Answer(msgspec.Struct, frozen=True):
    """One complete HTTP answer as the bounded reader gave it: within all limits, not yet read by a contract."""

    status: int
    headers: tuple[tuple[str, str], ...]
    """Names in lower case, in the order received, repeated names kept."""
    body: bytes
    sent_at: Instant
    answered_at: Instant

    def header(self, name: str) -> str | None:
        """The first value of *name* (lower case)."""
        return next((value for key, value in self.headers if key == name), None)


class Fault(msgspec.Struct, frozen=True):
    """A request that brought no usable answer. *may_have_been_sent*: bytes may have reached the provider."""

    kind: FaultKind
    may_have_been_sent: bool
    at: Instant
    text: str = ""
    """Ours, harmless: never provider bytes, addresses with queries, or secrets."""
    apart: bool = False
    """R39: of a request for several operations, and of none of them: it ends nothing, each is asked alone next."""


class Exchange(msgspec.Struct, frozen=True):
    """One step of a poll: which request of the chain, and what it brought."""

    step: str
    url: str
    answer: Answer
    others: int = 0
    """R39: how many other operations the same request asked for."""


class Guidance(msgspec.Struct, frozen=True):
    """Valid guidance from one answer: ask not before *delay_ms* after the answer was complete (T3).

    A date was already measured against the same answer's `Date`. *name*: the header or hint that said it.
    """

    delay_ms: int
    name: str
    is_retry_after: bool


class HintFault(msgspec.Struct, frozen=True):
    """T4: guidance that was refused, and why."""

    name: str
    why: str


class ResultPointer(msgspec.Struct, frozen=True):
    """S4, S9: where the result is and what the success permits. *fields* may hold pre-signed links: sealed at rest."""

    fields: dict[str, Any]
    permits: str = "fetch_result"
    validated: bool = True
    qualifiers: tuple[str, ...] = ()
    """`partial`, `empty`, `did_not_run`."""


class HttpFact(msgspec.Struct, frozen=True, gc=False):
    """Did the provider answer, with what, when."""

    code: int
    sent_at: Instant
    answered_at: Instant
    request_id: str | None = None


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """What one status request told us, read by the contract. The provider's texts are raw: made harmless when shown."""

    verdict: Verdict
    http: HttpFact
    state: str | None = None
    """The state as displayed: text as it came, other JSON values as compact JSON; None: none was read."""
    cancelling: bool = False
    detail: StopDetail | None = None
    explanation: str | None = None
    """For people: the state's own explanation, the rule that failed, the field that is missing."""
    near_match: str | None = None
    """S2: the nearest state that the contract knows; a hint to the human only."""
    guidance: Guidance | None = None
    hint_faults: tuple[HintFault, ...] = ()
    clock_skew_ms: int | None = None
    """Set when the answer's `Date` and our clock are more than 2 s apart (T3)."""
    result: ResultPointer | None = None
    qualifiers: tuple[str, ...] = ()
    """What the contract says of this end besides its state; a success carries them in its result as well."""
    provider_error: str | None = None
    error_details_missing: bool = False
    progress: str | None = None
    provider_expires_at: Instant | None = None
    job_seen: bool = False
    """This answer proves that the provider knows the job."""
    long_poll_timeout: bool = False
    continues: bool = False
    """R21: no verdict yet, a further step of the chain is needed; it goes out at once and is charged like any other."""
    apart: bool = False
    """R39: an answer about several that speaks of no single job: it ends nothing, each is asked alone next."""
    notes: tuple[str, ...] = ()
    """Remarks for the audit: `clock_skew`, `hint_invalid`, `near_match: succeeded`, `403 grace 1 of 3` ..."""
    envelope: bytes = b""
    """JSON of what the rules read ({http, headers, body} reduced), at most 2 KiB; kept sealed."""


class Memory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was seen before, carried from poll to poll: the operation's memory (`seen` in contract expressions)."""

    first_seen_at: Instant | None = None
    polls: int = 0
    last_state: str | None = None
    state_changes: int = 0
    changed_at: Instant | None = None
    in_a_row: int = 0
    """Answers in a row with `last_state` (transient unknowns have a limit)."""
    attempt: str | None = None
    """The attempt counter that the contract names (S10); compact JSON."""
    forbidden: int = 0
    """403 answers excused by the grace so far."""
    settling: str | None = None
    """X8: the final verdict and state that wait for confirmation, `verdict:state`."""
    cancel_sent_at: Instant | None = None
    unknown_actions: tuple[str, ...] = ()
    """O5: kinds of actions whose process ended before their answer; the next answer of a kind takes it away."""
    next_url: str | None = None
    """R18: where the next request goes; sealed at rest."""
    step: str | None = None
    """R21: the step of the chain that the next poll starts with; None: the first."""
    values: dict[str, Any] = {}
    """What the contract's `remember` keeps (ids and URLs of later resources); sealed at rest."""
    alone: bool = False
    """R39: an answer about several spoke of no single job: asked alone until an answer is about this one."""
    progress: str | None = None
