"""What the core needs from outside, as protocols. Real and simulated adapters pass the same contract suites.

Job: name the calls, their units, their promises. Must not know: any library that fulfils them.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, Protocol

import msgspec

from pollcore.facts import (
    ActionRecord,
    Answer,
    AuditEvent,
    BootMs,
    CallGrant,
    ContractUse,
    CredentialMode,
    Escalation,
    Fault,
    Grant,
    Instant,
    Moment,
    Operation,
    RateScope,
    Request,
    Secret,
    Session,
    Snapshot,
    Status,
    StopReason,
)

RUN_FRESH_MS: Final = 30_000
"""A worker whose newest heartbeat is older counts as ended (it beats every 10 s)."""


class Clock(Protocol):
    """All clocks at once (T9)."""

    def now(self) -> Moment:
        """One reading; never raises."""
        ...

    async def wait(self, event: asyncio.Event, ms: int) -> None:
        """Until *event* is set or *ms* have passed, at most 15 s in one piece (T9); may return early."""
        ...


class Chance(Protocol):
    """The only source of randomness."""

    def draw(self) -> float:
        """From [0.0, 1.0)."""
        ...

    def token(self, size: int = 8) -> str:
        """*size* random bytes as lower-case hex, for ids."""
        ...


# --- requests ---------------------------------------------------------------------------------------------------------


class Transport(Protocol):
    """Sends exactly one request and reads one bounded answer; follows nothing, retries nothing."""

    async def send(self, request: Request, secret: Secret | None) -> Answer | Fault:
        """Never raises but for cancellation; every failure is a Fault. Ends within total_ms + 1 s (H7)."""
        ...

    async def aclose(self) -> None:
        """Close all connections."""
        ...


# --- credentials ------------------------------------------------------------------------------------------------------


class CredentialInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What may be known of a credential: never its value."""

    name: str
    kind: str
    names: tuple[str, ...] = ()
    """Header names (kind header) or the query parameter's name (kind query)."""
    origins: tuple[str, ...] = ()
    mode: CredentialMode = CredentialMode.STANDING
    created_at: Instant
    last_used_at: Instant | None = None

    @property
    def binding(self) -> str:
        """Digest of what a leave to use it is bound to: another kind, origin or secret makes another one (G4)."""
        bound = msgspec.json.encode([self.name, self.kind, self.names, sorted(self.origins), self.created_at])
        return hashlib.sha256(bound).hexdigest()


class CredentialAsked(msgspec.Struct, frozen=True, kw_only=True):
    """G2: a looser mode that was asked for: a question that belongs to a credential and to no operation."""

    question: Escalation
    """`operation_id` is empty, the cause `mode_change:NAME`."""
    info: CredentialInfo
    """The credential as it was when it was asked; anything else makes the question stale."""
    after: CredentialMode


class CredentialModes(Protocol):
    """Credentials' modes and the durable questions about them (G2, G6). One open question a credential."""

    async def now_is(self, name: str) -> CredentialInfo | None:
        """What is stored of a credential; None: no such credential."""
        ...

    async def ask(self, now: Moment, asked: CredentialAsked, event: AuditEvent) -> CredentialAsked:
        """Store the question, in place of an open one that asked for something else; the open one where it is the same.

        Raises Stale: the credential is not as *asked* says.
        """
        ...

    async def asked(self, escalation_id: str) -> CredentialAsked | None:
        """The question, open or decided."""
        ...

    async def settle(
        self,
        now: Moment,
        asked: CredentialAsked,
        closed: Escalation,
        events: Sequence[AuditEvent],
        grant: Grant | None = None,
        mode: CredentialMode | None = None,
    ) -> None:
        """Close the question, use the grant up and set the mode, in one transaction.

        Raises Stale: it was decided, or (with a *mode*) the credential is not as it was asked about.
        """
        ...


class ContractKnown(msgspec.Struct, frozen=True, kw_only=True):
    """What operators did with one contract digest: said what its requests are (X7), looked at it (G5).

    An approved first use counts as looked at by that operator, where nobody opened its text before.
    """

    digest: str
    use: ContractUse | None = None
    decided_at: Instant | None = None
    decided_by: str | None = None
    seen_at: Instant | None = None
    seen_by: str | None = None


class CredentialValue(msgspec.Struct, frozen=True):
    """A secret for one use, with the keyed digest that tells a rotated one (K5)."""

    info: CredentialInfo
    secret: Secret
    digest: str


class Credentials(Protocol):
    """Secrets in the OS keyring; metadata in the store. Calls run aside with a time limit (K2)."""

    async def info(self, name: str) -> CredentialInfo:
        """What may be known of it, without the keyring. Raises CredentialUnavailable (credential_missing)."""
        ...

    async def read(self, name: str, info: CredentialInfo | None = None) -> CredentialValue:
        """Raises CredentialUnavailable (detail: credential_missing, keyring_locked, keyring_timeout,
        keyring_absent). *info*: what `info` just said, so that it is not asked twice.
        """
        ...

    async def digest(self, name: str, refused: Collection[str] = ()) -> str:
        """The keyed digest of the stored secret. Raises CredentialUnavailable.

        *refused*: digests of what was refused. Of a kind that buys its token the answer is then the digest of a token,
        bought anew where the one at hand is among them and a purchase is due; else it is one of them.
        """
        ...

    def forget(self, name: str | None = None) -> None:
        """Drop what is kept in memory of *name*, or of all: after a denial."""
        ...

    async def known(self) -> Sequence[CredentialInfo]:
        """All that is known of every credential, but its value."""
        ...


# --- sealing and audit ------------------------------------------------------------------------------------------------


class Sealer(Protocol):
    """Seals columns. Sealing needs no secret of the operator; opening may (the reading key)."""

    def seal(self, purpose: str, plain: bytes) -> bytes:
        """*purpose* is bound into the seal (`operation.status_url`)."""
        ...

    def open(self, purpose: str, sealed: bytes) -> bytes:
        """Raises SealedUnreadable."""
        ...


class AuditTip(msgspec.Struct, frozen=True):
    """The last link of the chain as read inside the running transaction."""

    seq: int
    hash: bytes
    log: bytes | None = None
    """What the store keeps of the log's keys beside the chain (document `audit`, `log`)."""


class AuditLink(msgspec.Struct, frozen=True):
    """One link to insert: bytes exactly as hashed."""

    seq: int
    blob: bytes
    hash: bytes
    note: str = ""
    """A signed checkpoint over this link, stored with it."""


class AuditExtension(msgspec.Struct, frozen=True):
    """Links that no event of the story stands behind: a log's beginning, new keys, a grant about to be used."""

    links: Sequence[AuditLink] = ()
    log: bytes | None = None
    """Replaces what the store keeps of the log's keys."""
    notes: Mapping[int, str] = {}
    """Further checkpoints, by the number of their link."""


MakeExtension = Callable[[AuditTip | None, int], AuditExtension]
"""From the tip and the number of events recorded so far, both as read inside the transaction."""


class AuditLog(Protocol):
    """Turns events into links. Called inside the store's transaction: no I/O, no waiting."""

    def links(self, tip: AuditTip | None, events: Sequence[AuditEvent]) -> Sequence[AuditLink]:
        """Raises anything: then the transaction does not happen (O6)."""
        ...


# --- store ------------------------------------------------------------------------------------------------------------


class Stored(msgspec.Struct, frozen=True, kw_only=True):
    """One observation row: clear figures plus the sealed envelope. One per intent at most."""

    operation_id: str
    n: int
    answered_at: Instant
    http_code: int | None
    fault: str | None
    state: str | None
    verdict: str
    decision: str
    """`wait`, `succeed`, or a StopReason."""
    envelope: bytes = b""
    last_body: bytes | None = None
    """Up to 16 KiB, kept once per operation (the newest), only when the envelope does not hold all of it."""
    draw: float | None = None
    """The chance that went into the decision, so that a stored reading replays to the same one."""


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """One conditional change of one operation, with everything that belongs to the same moment.

    Taken only if the row still has `fence`: an epoch (a lease owner recording its answer) or a change number (everyone
    else). The store raises `change`; it refuses a status transition that TRANSITIONS does not list.
    """

    after: Operation
    fence_epoch: int | None = None
    fence_change: int | None = None
    fence_version: int | None = None
    """For grants: the version that was shown (G4)."""
    release_lease: bool = True
    events: tuple[AuditEvent, ...] = ()
    stored: Stored | None = None
    open_question: Escalation | None = None
    close_question: Escalation | None = None
    """The open one, with decided_at, decision and operator filled."""
    grant: Grant | None = None
    """Used up by this write; a second use is refused by a unique key."""
    contract_use: ContractUse | None = None
    """X7: what *grant* says of the contract in force, stored with it; refused where another answer is stored."""
    action: ActionRecord | None = None
    approval: CallGrant | None = None
    """G7: stored with the grant that it comes of; it takes the place of an earlier unused one of the operation."""
    session: Session | None = None
    """G6: stored with its grant; the same session again (one answer for many, E10) is stored once."""
    uses: CallGrant | None = None
    """I14: used up by this write (its `used_at`, `used_for` are filled), or the write is refused."""


class Granting(Protocol):
    """What uses a grant up, or not: a write of an operation, a decision about a credential."""

    @property
    def grant(self) -> Grant | None: ...


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A wish to send: lease, reload and all checks again, counter, intent and audit event in one conditional
    write (O7).

    Taken only if change is as loaded, status waiting, no live lease of another, used < max, both deadlines ahead, caps
    free.
    """

    operation: Operation
    """As loaded; the claim holds only if the row is unchanged since."""
    step: str
    origin: str
    method: str
    event: AuditEvent
    lease_ms: int = 30_000
    concurrency: int | None = None
    """Per provider caps, counted in the claim transaction, per store (T8)."""
    per_minute: int | None = None
    scopes: tuple[RateScope, ...] = ()
    """R38: further limits by account, credential, provider or route, counted in the same place."""
    secret_digest: str | None = None
    """H3: keyed digest of the secret that will be sent; a refusal of it that another process has written counts."""
    extra_charges: int = 0
    """Further requests that this poll will send in a chain; each is charged now."""
    approval: CallGrant | None = None
    """I14: the leave for exactly this request; taken only if it is unused and not expired, used up with the charge."""
    session: Session | None = None
    """G6: taken only if it lives and has calls left; counted with the charge."""


class Claimed(msgspec.Struct, frozen=True):
    """A claim that was taken: the operation after it (epoch, counter raised), and the numbers of its intents."""

    operation: Operation
    intents: tuple[int, ...]
    charged_at: Moment


class Cooldown(msgspec.Struct, frozen=True, kw_only=True):
    """T8: nothing goes to this provider with this account and credential before *until*."""

    provider: str
    account: str
    credential: str | None
    until: Instant
    until_boot: BootMs


class OriginState(msgspec.Struct, frozen=True, kw_only=True):
    """T11: an origin of one account that stopped answering. *down* after several faults across operations."""

    origin: str
    account: str
    faults_in_a_row: int
    down_since: Instant | None
    probe_operation: str | None = None
    probe_until_boot: BootMs | None = None
    """Only the probe may send before this; a dead prober is replaced after it."""


UNPROVED: Final = "unproved:"
"""Before the digest of a refused token while no other token of its credential was accepted."""


class Denial(msgspec.Struct, frozen=True):
    """H3: after a 401 nothing else sends this secret to this origin until the stored secret changes.

    A bought token is another one soon, without anybody's doing. So its denial holds back all that its credential buys,
    but for one check that an operator granted, or a credential entered anew; until one of these got an answer.
    """

    credential: str
    origin: str
    digest: str
    """Of the refused secret or token, after UNPROVED where a new token has to be proved first."""
    at: Instant

    @property
    def unproved(self) -> bool:
        """It was a bought token, and no other one was accepted since."""
        return self.digest.startswith(UNPROVED)

    @property
    def secret_digest(self) -> str:
        """The keyed digest of what was refused, alone."""
        return self.digest.removeprefix(UNPROVED)


class Pause(msgspec.Struct, frozen=True):
    """`pause --provider P [--account A] --until T`: lowers authority, sends nothing before *until*."""

    provider: str
    account: str | None
    until: Instant


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """G7: the time of one open question: it runs to *expires_at*, or stands still with *left_ms* left."""

    escalation_id: str
    before: Instant | None
    """`expires_at` as it was read."""
    expires_at: Instant | None
    left_ms: int | None


class Worker(msgspec.Struct, frozen=True, kw_only=True):
    """O8: one heartbeat."""

    owner: str
    pid: int
    host: str
    kind: str
    """`run`, `console`, `demo`."""
    started_at: Instant
    beat_at: Instant
    beat_boot: BootMs
    boot_id: str

    def is_alive(self, now: Moment) -> bool:
        """Its newest heartbeat is fresh, on this boot: the run has not ended as far as is known."""
        return self.boot_id == now.boot_id and now.boot - self.beat_boot <= RUN_FRESH_MS


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One transaction of the loop: results of the last group in, reservations of the next out, one look ahead."""

    now: Moment
    owner: str
    writes: tuple[Write, ...] = ()
    claims: tuple[Claim, ...] = ()
    cooldowns: tuple[Cooldown, ...] = ()
    origins: tuple[OriginState, ...] = ()
    denials: tuple[Denial, ...] = ()
    look: int = 0
    """How many due operations to load after the writes and claims (never leased ones)."""
    beat: Worker | None = None


class TurnOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a turn."""

    taken: tuple[bool, ...]
    """Per write: False = the fence did not hold; nothing of that write happened but a `late_result` event."""
    claimed: tuple[Claimed | None, ...]
    """Per claim: None = not now (changed, leased, capped); look again."""
    due: tuple[Operation, ...]
    next_due: BootMs | None
    """When the next operation that is not leased becomes due; None: nothing is waiting."""
    next_deadline: Instant | None = None
    """The earliest wall deadline of a live operation (a forward step of the wall clock makes it due)."""
    cooldowns: tuple[Cooldown, ...] = ()
    origins: tuple[OriginState, ...] = ()
    denials: tuple[Denial, ...] = ()
    pauses: tuple[Pause, ...] = ()
    """All that are in force now."""
    change: int = 0
    moved: tuple[Operation | None, ...] = ()
    """Per write: the lease still holds, but the record changed since it was loaded (an operator's hold, a new limit).
    Nothing was written; the same answer is decided anew on this record and written again."""
    answer_lost: tuple[tuple[str, int], ...] = ()
    """(operation, n): sent under a lease that is dead now, the answer never recorded (B4). The operation is among `due`
    until a write with `fence_change` and `stored` (fault `answer_lost`) settles it."""


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """What `list` and the screen ask for."""

    statuses: tuple[Status, ...] = ()
    provider: str | None = None
    since: Instant | None = None
    changed_since: int | None = None
    limit: int = 1_000


class Store(Protocol):
    """The durable records. Everything that returns has been committed with synchronous=FULL. Raises StoreUnusable.

    `turn` and `commit` are whole transactions on one writer; reads run on a connection of their own.
    """

    async def turn(self, turn: Turn) -> TurnOutcome: ...

    async def commit(
        self, now: Moment, writes: Sequence[Write], check: Callable[[], None] | None = None
    ) -> tuple[int, ...]:
        """All or nothing: raises Stale when a fence does not hold. Returns the new change numbers. Not for
        lease owners.
        """
        ...

    async def commit_each(self, now: Moment, writes: Sequence[Write]) -> tuple[str | None, ...]:
        """One transaction in which each write stands for itself (E10): None where it was taken, whole; else why not.
        A reason that begins with `moved`: the record changed, its version may not have. Not for lease owners.
        """
        ...

    async def submit(
        self,
        now: Moment,
        operation: Operation,
        snapshot: Snapshot,
        events: Sequence[AuditEvent],
        question: Escalation | None = None,
        resubmit: Write | None = None,
    ) -> Operation:
        """Insert. Raises Refused: `duplicate_job` (an open operation for the same provider, account and job; names it),
        `id_taken` (same id, different submission). *resubmit*: the write on the old operation, same transaction (E6).
        """
        ...

    async def operation(self, operation_id: str) -> Operation | None: ...

    async def by_job(self, provider: str, account: str, job_id: str) -> Sequence[Operation]:
        """All operations for one job, newest first (B2)."""
        ...

    async def operations(self, wanted: Filter) -> Sequence[Operation]:
        """By change number, newest first."""
        ...

    async def questions(self, operation_id: str | None = None, *, open_only: bool = True) -> Sequence[Escalation]: ...

    async def asked(
        self, cause: str | None = None, *, limit: int = 100_000, reasons: Sequence[StopReason] = ()
    ) -> Sequence[tuple[Operation, Escalation]]:
        """Open questions with their operations in one read, oldest first; *cause*: of this cause alone (E10);
        *reasons*: of these alone.
        """
        ...

    async def approval(self, operation_id: str) -> CallGrant | None:
        """The leave for one call that is granted and not used yet; it may have expired."""
        ...

    async def sessions(self) -> Sequence[Session]:
        """Sessions that nobody ended and nothing replaced; their time, calls or run may be over. Oldest first."""
        ...

    async def end_sessions(
        self, now: Moment, why: str, *, credential: str | None = None, owner: str | None = None, event: AuditEvent
    ) -> int:
        """End all sessions of a credential or of a run, for good; *event* is recorded if there was one. How many."""
        ...

    async def mark_seen(self, now: Moment, operation_id: str, escalation_id: str) -> bool:
        """The open question's card was painted; the first time counts. False: no such open question."""
        ...

    async def present(self, now: Moment, owner: str, started_at: Instant) -> None:
        """A console is open on the store, whether or not it polls (G7)."""
        ...

    async def screens(self) -> Sequence[tuple[Instant, Instant]]:
        """Start and newest sign of life of each console, also of closed ones."""
        ...

    async def set_windows(self, now: Moment, windows: Sequence[Window]) -> int:
        """Start or stop the time of open questions (G7); each only where it still is as *before*. How many."""
        ...

    async def questions_by_id(self, escalation_ids: Sequence[str]) -> Mapping[str, Escalation]:
        """Questions, open or decided, by their own id; unknown ones are absent."""
        ...

    async def events(
        self, operation_id: str | None = None, *, after: int = 0, limit: int = 10_000
    ) -> Sequence[tuple[int, AuditEvent]]:
        """In the order written: (sequence number, event)."""
        ...

    async def snapshot(self, digest: str) -> Snapshot | None: ...

    async def contracts_known(self, digests: Sequence[str]) -> Mapping[str, ContractKnown]:
        """What operators did with each; every digest is there."""
        ...

    async def contract_seen(self, now: Moment, digest: str, operator: str, event: AuditEvent) -> bool:
        """G5: keep that an operator has seen this contract; False, and no event: it was kept already."""
        ...

    async def credential_questions(self, *, open_only: bool = True) -> Sequence[Escalation]:
        """Questions that belong to a credential and to no operation, oldest first."""
        ...

    async def keep_snapshot(self, now: Moment, snapshot: Snapshot) -> None:
        """Store a snapshot that an operation is about to adopt; known digests are left alone."""
        ...

    async def record(self, now: Moment, events: Sequence[AuditEvent]) -> None:
        """Events that change no record (a step of the clock)."""
        ...

    async def renew(self, now: Moment, owner: str, epochs: Mapping[str, int]) -> Sequence[str]:
        """Renew the leases of requests in flight ({operation id: epoch}); returns the operations still ours."""
        ...

    async def requests_since(self, at: Instant, operation_ids: Sequence[str]) -> int:
        """How many status requests of these operations were charged since *at* (B1)."""
        ...

    async def last_answer(self, operation_id: str) -> Stored | None:
        """The newest stored answer with its envelope opened. Raises SealedUnreadable."""
        ...

    async def last_answers(self, operation_ids: Sequence[str]) -> Mapping[str, Stored]:
        """`last_answer` of many in one read; absent: there is none, or it cannot be opened now."""
        ...

    async def answered_under(
        self, contract: str, since: Instant, *, after: str | None = None, limit: int = 100
    ) -> Sequence[Operation]:
        """Operations under any text of the contract of that name with an answer at or after *since*, in the order
        stored. *after*: the last operation of the page before.
        """
        ...

    async def answers(self, operation_id: str, *, after: int = 0, limit: int = 100) -> Sequence[Stored]:
        """Answers of one operation with their envelopes opened, by number from *after* on. Raises SealedUnreadable."""
        ...

    async def actions(self, operation_id: str) -> Sequence[ActionRecord]: ...

    async def actions_of(self, operation_ids: Sequence[str]) -> Mapping[str, Sequence[ActionRecord]]:
        """`actions` of many in one read; absent: none."""
        ...

    async def counts(self) -> Mapping[str, int]:
        """Operations by status, and `questions`."""
        ...

    async def change(self) -> int:
        """The store's change number."""
        ...

    async def wait_for_change(self, after: int, timeout: float) -> int:
        """Until the change number is above *after*, whoever wrote, or the time is over; the change number then."""
        ...

    async def workers(self) -> Sequence[Worker]: ...

    async def pause(self, now: Moment, pause: Pause, event: AuditEvent) -> None: ...

    async def check(self) -> Sequence[str]:
        """O6: what does not add up (counters against intents); empty: all well. Never before the first rows are
        shown.
        """
        ...

    async def backup(self, path: str) -> None:
        """A consistent copy through SQLite's own interface."""
        ...

    async def close(self) -> None: ...
