"""The invariants of the books, after every commit and over the whole history at the end.

Job: say, with its id, what does not hold; keep an account of its own (limits, counters, boot deadlines, leases, what the
provider asked for) that the code under test cannot touch. Must not know: how the code under test works, what was struck.
Ids: I1 ... I28 as in reliability notes; X: rules of the specification by their own ids.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollcore.actions import Shown
from pollcore.card import digest
from pollcore.controller.exchange import MAX_PAUSE_MS
from pollcore.decide import SPENDS_FAILURE_BUDGET
from pollcore.escalation.table import permitted
from pollcore.facts import MINUTE, TRANSITIONS, Status
from pollcore.ports import Claimed
from pollcore.schedule import min_delay
from tests.sim import contracts

if TYPE_CHECKING:
    from tests.sim.world import Flight, World

TTL_MS: Final = 30_000
SLACK_MS: Final = 2
RECORD_MS: Final = 60_000
"""An answer that came to a worker that was not struck is recorded within this."""
FAILS: Final = frozenset(kind.value for kind in SPENDS_FAILURE_BUDGET)
GOES_ON: Final = frozenset({"extension_requested", "operator_request"})
ENDS: Final = frozenset(s.value for s in Status if s.is_end)

_COLUMNS: Final = [
    "op",
    "id",
    "status",
    "version",
    "change",
    "epoch",
    "lease_owner",
    "lease_until",
    "lease_ms",
    "renewed",
    "contract",
    "credential",
    "boot",
    "deadline_at",
    "deadline_boot",
    "useful_until",
    "max_status_requests",
    "status_requests_used",
    "max_transport_failures",
    "transport_failures_used",
    "max_rate_limited",
    "rate_limited_used",
    "completed_polls",
    "next_poll_at",
    "guidance_until",
    "check_once",
    "extensions_used",
    "holds_used",
    "stop_reason",
    "stop_detail",
    "carried",
    "provider",
    "account",
    "hold_until",
    "cancel_granted",
]
_SELECT: Final = f"SELECT {', '.join(_COLUMNS)} FROM operation ORDER BY op"
Row: Any = msgspec.defstruct("Row", [(name, Any) for name in _COLUMNS], frozen=True)


class Account(msgspec.Struct):
    """What is known of one operation beside its row."""

    id: str
    deadline_boot: int
    """Kept by us: what was left at submission on the boot clock, raised by grants alone."""
    boot: int
    failures: int
    limited: int
    polls: int
    obligation: int = 0
    """No request before this boot time: Retry-After of the newest recorded answer."""
    floor: int = 0
    """No request before this boot time: min_delay behind the newest recorded answer."""
    steps: int = 0
    """Number of wall steps when the obligation arose."""


class Watch:
    """All invariants of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: dict[int, Any] = {}
        self._accounts: dict[int, Account] = {}
        self._leases: dict[int, tuple[tuple[Any, ...], int]] = {}
        """Per operation: (owner, epoch, renewed) and the boot time at which it was first so."""
        self._intents = 0
        self._waiting: dict[int, tuple[int, int, int]] = {}
        """Intent without an observation -> (operation, n, epoch)."""
        self._grants = 0
        self._events = 0
        self._seen: dict[tuple[str, int], int] = {}
        self._flights: dict[tuple[str, int], Flight] = {}
        self._answers: dict[tuple[str, int], tuple[int, Flight]] = {}
        """(operation, n) -> boot time at which its answer came, and the flight."""
        self._cooldowns: dict[tuple[str, str, str | None], int] = {}
        self._denied: dict[tuple[str, str], tuple[str, int]] = {}
        """(secret, origin) -> number of the commit that recorded its 401."""
        self._shown: dict[str, tuple[str, int]] = {}
        """Digest of a painted card -> (question, version)."""
        self._granted: set[str] = set()
        self._charged: dict[tuple[str, int], int] = {}
        """(operation, n) -> number of the commit that charged it."""
        self._commits = 0
        self._late: set[tuple[str, int]] = set()
        self._down: dict[tuple[str, str], int] = {}
        self.checked = 0

    def _no(self, invariant: str, text: str) -> None:
        self._world.broken(invariant, text)

    # --- what the world tells -----------------------------------------------------------------------------------------

    def rebooted(self) -> None:
        """Boot times mean nothing now."""
        self._cooldowns.clear()
        self._leases = {op: (lease, -1) for op, (lease, _) in self._leases.items()}

    def killed(self, process: Any) -> None:
        """Nothing to remember: owners are asked of the world."""

    def sent(self, flight: Flight, claimed: Claimed) -> None:
        """A status request leaves: it is charged, committed, not too late, and its secret was not refused."""
        world, now = self._world, self._world.now()
        name, n = flight.operation, flight.n
        assert name is not None
        row = world.sql.execute(
            "SELECT i.epoch, i.boot, o.deadline_boot, o.boot FROM intent i JOIN operation o ON o.op = i.operation "
            "WHERE o.id = ? AND i.n = ?",
            (name, n),
        ).fetchone()
        if row is None:
            self._no("I28", f"{name}: request {n} left without a committed intent")
            return
        if claimed.charged_at.boot_id != now.boot_id or now.boot - claimed.charged_at.boot > MAX_PAUSE_MS:
            self._no("L6", f"{name}: request {n} left {now.boot - claimed.charged_at.boot} ms after its charge")
        if (name, n) in self._flights:
            self._no("I1", f"{name}: request {n} left twice")
        self._flights[name, n] = flight
        if flight.secret is not None:
            refused = self._denied.get((flight.secret, _origin(flight.url)))
            if refused is not None and refused[1] < self._charged.get((name, n), 0):
                self._no("H3", f"{name}: request {n} carries a secret that {_origin(flight.url)} refused before")

    def seen(self, flight: Flight) -> None:
        """I1: the provider never counts more than was charged."""
        if flight.operation is None:
            return
        key = (flight.operation, flight.n)
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] > 1:
            self._no("I1", f"{key[0]}: the provider saw request {key[1]} twice")
        used = self._world.sql.execute(
            "SELECT status_requests_used - carried FROM operation WHERE id=?", (key[0],)
        ).fetchone()[0]
        count = sum(1 for name, _ in self._seen if name == key[0])
        if count > used:
            self._no("I1", f"{key[0]}: the provider saw {count} requests, {used} are counted")

    def delivered(self, flight: Flight) -> None:
        """An answer reached its process."""
        if flight.operation is not None:
            self._answers[flight.operation, flight.n] = (self._world.now().boot, flight)

    def painted(self, shown: Shown) -> None:
        """A card was drawn: its choices are those of its reason's table (I11)."""
        allowed = permitted(shown.question.reason, shown.operation.status)
        for choice in shown.choices:
            if choice.kind not in allowed:
                self._no("I11", f"{shown.question.reason.value} offers {choice.kind.value}")
        if digest(shown.card) != shown.digest:
            self._no("I12", "the digest is not that of what was painted")
        self._shown[shown.digest] = (shown.question.escalation_id, shown.operation.version)

    # --- after every commit -------------------------------------------------------------------------------------------

    def committed(self) -> None:
        """Compare the store with what it was one commit ago."""
        self._commits += 1
        sql = self._world.sql
        now = self._world.now()
        found = {row[0]: row for row in sql.execute(_SELECT).fetchall()}
        changed = {op: row for op, row in found.items() if self._rows.get(op) != row}
        before = {op: Row(*self._rows[op]) for op in changed if op in self._rows}
        rows = {op: Row(*row) for op, row in changed.items()}
        self._rows.update(changed)
        intents = sql.execute(
            "SELECT id, operation, n, epoch, at, boot FROM intent WHERE id > ? ORDER BY id", (self._intents,)
        ).fetchall()
        grants = sql.execute(
            'SELECT rowid, operation, escalation_id, version, body FROM "grant" WHERE rowid > ? ORDER BY rowid',
            (self._grants,),
        ).fetchall()
        observations = self._observations() if self._waiting or intents else []
        for op, row in rows.items():
            if op not in before:
                self._inserted(op, row, now)
        for _, op, escalation, version, body in grants:
            self._grants += 1
            self._grant(op, escalation, version, body)
        granted = {op: json.loads(body) for _, op, _, _, body in grants}
        for intent in intents:
            self._intent(intent, found, before, now)
        for op, row in rows.items():
            if op in before:
                self._row(op, before[op], row, granted.get(op), now)
        for one in observations:
            self._observation(one, now)
        for op, row in rows.items():
            self._always(op, row)
        if rows:
            self._questions(rows)
        for op, row in rows.items():
            lease = (row.lease_owner, row.epoch, row.renewed)
            if row.lease_owner is None:
                self._leases.pop(op, None)
            elif self._leases.get(op, (None, 0))[0] != lease:
                self._leases[op] = (lease, now.boot)
        self.checked += 1

    def _observations(self) -> list[Any]:
        marks = ",".join(str(i) for i in self._waiting) or "0"
        return self._world.sql.execute(
            "SELECT intent, operation, n, http_code, fault, verdict, decision FROM observation "
            f"WHERE intent IN ({marks}) OR intent > {self._intents} ORDER BY intent"
        ).fetchall()

    def _inserted(self, op: int, row: Any, now: Any) -> None:
        left = row.deadline_at - now.wall
        if not -SLACK_MS <= row.deadline_boot - now.boot - left <= SLACK_MS and not self._world.acting_late:
            self._no("B6", f"{row.id}: {left} ms are left, the boot clock got {row.deadline_boot - now.boot}")
        self._accounts[op] = Account(
            row.id,
            row.deadline_boot,
            row.boot,
            row.transport_failures_used,
            row.rate_limited_used,
            row.completed_polls,
        )

    # --- one intent ---------------------------------------------------------------------------------------------------

    def _intent(self, intent: Any, found: dict[int, Any], before: dict[int, Any], now: Any) -> None:
        number, op, n, epoch, at, boot = intent
        row, account = Row(*found[op]), self._accounts[op]
        old = before.get(op)
        self._charged[row.id, n] = self._commits
        if number != self._intents + 1:
            self._no("I4", f"intent {number} follows {self._intents}")
        self._intents = number
        self._waiting[number] = (op, n, epoch)
        if old is None:
            self._no("I4", f"{row.id}: charged in the commit that made it")
            return
        if n != old.status_requests_used + 1:
            self._no("I4", f"{row.id}: request {n} follows {old.status_requests_used}")
        if epoch != old.epoch + 1:
            self._no("I6", f"{row.id}: lease {epoch} follows {old.epoch}")
        if old.status != "waiting":
            self._no("I10", f"{row.id}: charged while {old.status}")
        if at >= row.deadline_at or (row.boot == account.boot and boot >= account.deadline_boot):
            self._no(
                "I8",
                f"{row.id}: request {n} at {at} / boot {boot}, deadline {row.deadline_at} / {account.deadline_boot}",
            )
        if row.useful_until is not None and at >= row.useful_until:
            self._no("B5", f"{row.id}: request {n} after useful_until")
        if old.status_requests_used >= old.max_status_requests:
            self._no("I2", f"{row.id}: request {n} of {old.max_status_requests}")
        if row.boot == account.boot:
            if boot + SLACK_MS < account.obligation and account.steps == self._world.wall_steps:
                self._no(
                    "I15", f"{row.id}: request {n} goes out {account.obligation - boot} ms before Retry-After is over"
                )
            if boot + SLACK_MS < account.floor:
                self._no("T6", f"{row.id}: request {n} goes out {account.floor - boot} ms before min_delay is over")
        self._takeover(op, old, row, now)
        if now.boot - boot <= MAX_PAUSE_MS and not self._world.acting_late:
            # else the charge is burned: its worker was stopped before the commit
            self._shared(op, row, boot, now)

    def _takeover(self, op: int, old: Any, row: Any, now: Any) -> None:
        """L3, L4: a lease is taken over on proof of death, or unchanged for its span by the boot clock."""
        if old.lease_owner is None:
            return
        lease, since = self._leases.get(op, (None, now.boot))
        owner = self._owner(old.lease_owner)
        if self._world.is_proved_dead(owner) or since < 0:
            return
        if (
            lease == (old.lease_owner, old.epoch, old.renewed)
            and now.boot - since >= max(TTL_MS, old.lease_ms or 0) - SLACK_MS
        ):
            return
        self._no(
            "L3",
            f"{row.id}: lease {old.epoch} of {owner} taken over after {now.boot - since} ms without proof of death",
        )

    def _owner(self, number: int) -> str:
        return str(self._world.sql.execute("SELECT text FROM name WHERE no=?", (number,)).fetchone()[0])

    def _shared(self, op: int, row: Any, boot: int, now: Any) -> None:
        """T8, T11, pauses, caps: what other operations are waiting for holds for this one."""
        sql = self._world.sql
        until = self._cooldowns.get((row.provider, row.account, row.credential), 0)
        if boot + SLACK_MS < until:
            self._no("T8", f"{row.id}: sends {until - boot} ms before the shared cool-down ends")
        paused = sql.execute(
            "SELECT 1 FROM pause WHERE provider=? AND account IN ('', ?) AND until > ?",
            (row.provider, row.account, now.wall),
        ).fetchone()
        if paused:
            self._no("G5", f"{row.id}: sends while its provider is paused")
        policy = contracts.contract(row.provider)
        if policy.concurrency is not None:
            flying = sql.execute(
                "SELECT count(*) FROM operation WHERE provider=? AND lease_owner IS NOT NULL", (row.provider,)
            ).fetchone()[0]
            if flying > policy.concurrency:
                self._no("T8", f"{row.provider}: {flying} requests in flight, {policy.concurrency} are allowed")
        if policy.per_minute is not None:
            minute = sql.execute(
                "SELECT count(*) FROM intent i JOIN operation o ON o.op=i.operation JOIN request r ON r.id=i.request "
                "WHERE o.provider=? AND r.boot > ? AND r.boot_no = (SELECT boot FROM meta)",
                (row.provider, boot - MINUTE),
            ).fetchone()[0]
            if minute > policy.per_minute:
                self._no("T8", f"{row.provider}: {minute} requests a minute, {policy.per_minute} are allowed")
        self._probe(op, row)

    def _probe(self, op: int, row: Any) -> None:
        """T11: an origin that is down is asked by one."""
        sql = self._world.sql
        origin = sql.execute(
            "SELECT n.text FROM intent i JOIN request r ON r.id=i.request JOIN name n ON n.no=r.origin "
            "WHERE i.operation=? ORDER BY i.n DESC LIMIT 1",
            (op,),
        ).fetchone()[0]
        key = (origin, row.account)
        since = self._down.get(key)
        if since is None:
            return
        others = sql.execute(
            "SELECT o.id, i.n FROM operation o JOIN intent i ON i.operation=o.op AND i.n=o.status_requests_used "
            "JOIN request r ON r.id=i.request JOIN name n ON n.no=r.origin "
            "WHERE o.op <> ? AND o.lease_owner IS NOT NULL AND n.text=? AND o.account=? AND i.id > ?",
            (op, origin, row.account, since),
        ).fetchall()
        # a charge whose commit was not known to be done holds a lease, and no request
        flying = [name for name, n in others if (name, n) in self._flights]
        if flying:
            self._no("T11", f"{row.id} asks {origin}, which is down and asked by {flying[0]} already")

    # --- one observation ----------------------------------------------------------------------------------------------

    def _observation(self, one: Any, now: Any) -> None:
        intent, op, n, code, fault, verdict, decision = one
        op_, n_, epoch = self._waiting.pop(intent)
        row, account = Row(*self._rows[op]), self._accounts[op]
        if (op_, n_) != (op, n):
            self._no("I5", f"observation of {op}/{n} at the intent of {op_}/{n_}")
        if epoch != row.epoch:
            self._no("I7", f"{row.id}: an answer of lease {epoch} was written under lease {row.epoch}")
        if fault == "answer_lost":
            self._lost(op, row, now)
        if row.lease_owner is not None:
            self._no("O2", f"{row.id}: the lease is held although request {n} is recorded")
        account.polls += 1
        account.failures += fault in FAILS or verdict == "transport_failure"
        account.limited += verdict in ("rate_limited", "quota_exhausted")
        expected = (
            account.polls,
            min(account.failures, row.max_transport_failures),
            min(account.limited, row.max_rate_limited),
        )
        account.failures, account.limited = expected[1:]
        found = (row.completed_polls, row.transport_failures_used, row.rate_limited_used)
        if found != expected:
            self._no("B2", f"{row.id}: (polls, failures, rate-limit answers) are {found}, the answers say {expected}")
        policy = contracts.contract(row.provider).policy
        came = self._answers.get((row.id, n))
        if came is not None and fault is None:
            boot, flight = came
            self._answered(row, account, boot, flight, policy, verdict, decision, code)

    def _lost(self, op: int, row: Any, now: Any) -> None:
        """L3, B4: an answer is given up by its own owner at its end, or once its owner is dead."""
        (owner, *lease), since = self._leases.get(op, ((None,), -1))
        if owner is None or since < 0 or self._world.acting is None:
            return
        name = self._owner(owner)
        mine = name == self._world.acting.name
        span = now.boot - since >= TTL_MS - SLACK_MS
        if not (mine or span or self._world.is_proved_dead(name)):
            self._no("L3", f"{row.id}: the answer under lease {lease[0]} of {name}, who lives, was given up as lost")

    def _answered(
        self, row: Any, account: Account, boot: int, flight: Flight, policy: Any, verdict: str, decision: str, code: int
    ) -> None:
        reply = flight.reply
        account.floor = boot + min_delay(policy.schedule)
        account.obligation = boot + reply.wait_ms if reply.wait_ms is not None else 0
        account.steps = self._world.wall_steps
        if reply.wait_ms and code in (429, 503):
            key = (row.provider, row.account, row.credential)
            self._cooldowns[key] = max(self._cooldowns.get(key, 0), boot + reply.wait_ms)
        if code == 401 and flight.secret is not None:
            self._denied[flight.secret, _origin(flight.url)] = (row.id, self._commits)
        if reply.final == "succeeded" and policy.schedule.settle_delay is None and row.status != "succeeded":
            self._no("S9", f"{row.id}: request {flight.n} brought the job's success; it is {row.status} ({decision})")
        if reply.final is not None and policy.schedule.settle_delay is None and row.status not in ENDS:
            self._no("S9", f"{row.id}: request {flight.n} brought {reply.final}; it is {row.status} ({decision})")

    # --- one changed row ----------------------------------------------------------------------------------------------

    def _row(self, op: int, old: Any, row: Any, grant: Any, now: Any) -> None:
        account = self._accounts[op]
        if old.status in ENDS and row.status != old.status:
            self._no("I9", f"{row.id}: {old.status} became {row.status}")
        if row.status != old.status and Status(row.status) not in TRANSITIONS[Status(old.status)]:
            self._no("I9", f"{row.id}: there is no way from {old.status} to {row.status}")
        if old.status in ENDS and row.status_requests_used != old.status_requests_used:
            self._no("I9", f"{row.id}: a request after its end")
        for name in ("version", "epoch", "status_requests_used", "transport_failures_used", "rate_limited_used",
                     "completed_polls", "extensions_used", "holds_used"):  # fmt: skip
            if getattr(row, name) < getattr(old, name):
                self._no("B2", f"{row.id}: {name} went from {getattr(old, name)} to {getattr(row, name)}")
        if row.lease_until is not None and (row.lease_until, row.lease_owner) != (old.lease_until, old.lease_owner):
            at = self._world.acting_now().wall
            if row.lease_until - at > max(TTL_MS, row.lease_ms or 0):
                self._no("I16", f"{row.id}: a lease of {row.lease_until - at} ms")
        self._limits(old, row, grant, account, now)
        if old.version == row.version and (old.status, old.contract, old.credential) != (
            row.status,
            row.contract,
            row.credential,
        ):
            self._no("G4", f"{row.id}: status, contract or credential changed under version {row.version}")
        if row.status == "escalated" and old.status != "escalated" and grant is None:
            self._reason(old, row, account)

    def _limits(self, old: Any, row: Any, grant: Any, account: Account, now: Any) -> None:
        """I3: limits are those of the submission plus what grants say, and nobody else writes them."""
        added = (0, 0, 0, 0)
        if grant is not None and grant["choice"]["kind"] != "approve_session":
            choice = grant["choice"]
            added = tuple(choice.get(k, 0) for k in ("minutes", "checks", "transport_failures", "rate_limited"))
        minutes, *counts = added
        names = ("max_status_requests", "max_transport_failures", "max_rate_limited")
        for name, count in zip(names, counts, strict=True):
            if getattr(row, name) != getattr(old, name) + count:
                self._no("I3", f"{row.id}: {name} {getattr(old, name)} -> {getattr(row, name)}, granted {count}")
        if row.status in ENDS:
            return
        if row.boot != account.boot:
            # boot times are counted anew from what the wall clock leaves, once a boot
            account.boot = row.boot
            account.deadline_boot = row.deadline_boot
            account.obligation = account.floor = 0
            if (
                row.deadline_boot - now.boot > old.deadline_at - now.wall + minutes * MINUTE + SLACK_MS
                and not self._world.acting_late
            ):
                self._no("I17", f"{row.id}: a new boot gave it more time")
        deadline = old.deadline_at
        if minutes:
            at = grant["granted_at"]
            deadline = max(old.deadline_at, at) + minutes * MINUTE
            boot = self._world.acting_now().boot
            account.deadline_boot = max(old.deadline_boot, boot) + minutes * MINUTE
        if row.deadline_at != deadline:
            self._no("I3", f"{row.id}: deadline {old.deadline_at} -> {row.deadline_at}, expected {deadline}")
        if row.deadline_boot > account.deadline_boot + SLACK_MS and not self._world.acting_late:
            self._no("I17", f"{row.id}: boot deadline {row.deadline_boot}, {account.deadline_boot} was granted")
        if row.useful_until != old.useful_until and not minutes:
            self._no("I3", f"{row.id}: useful_until moved without a grant")

    def _reason(self, old: Any, row: Any, account: Account) -> None:
        """A5: a stop's reason is borne out by the counters and the clocks."""
        now = self._world.now()
        reason = row.stop_reason
        if old.check_once or old.status == "held" or row.stop_detail == "second_submission":
            return
        wrong = {
            "request_budget_exhausted": row.status_requests_used < row.max_status_requests,
            "provider_failure": row.transport_failures_used < row.max_transport_failures,
            "delivery_ambiguous": row.transport_failures_used < row.max_transport_failures,
            "rate_limited": row.rate_limited_used < row.max_rate_limited and row.stop_detail != "quota_exhausted",
            "deadline_exceeded": now.wall < row.deadline_at and now.boot < row.deadline_boot,
        }.get(reason, False)
        if wrong and not self._world.acting_late:
            self._no("A5", f"{row.id}: stopped as {reason}, which is not so")

    def _always(self, op: int, row: Any) -> None:
        """What holds of every row at every commit."""
        for used, most in (
            ("status_requests_used", "max_status_requests"),
            ("transport_failures_used", "max_transport_failures"),
            ("rate_limited_used", "max_rate_limited"),
        ):
            if not 0 <= getattr(row, used) <= max(getattr(row, most), row.carried):
                self._no("I2", f"{row.id}: {used} is {getattr(row, used)} of {getattr(row, most)}")
        count = self._world.sql.execute("SELECT count(*) FROM intent WHERE operation=?", (op,)).fetchone()[0]
        if count != row.status_requests_used - row.carried:
            self._no("I4", f"{row.id}: {row.status_requests_used} counted, {row.carried} carried over, {count} intents")
        if row.status == "waiting" and row.lease_owner is None:
            for used, most, reason in (
                ("status_requests_used", "max_status_requests", "request_budget_exhausted"),
                ("transport_failures_used", "max_transport_failures", "provider_failure"),
                ("rate_limited_used", "max_rate_limited", "rate_limited"),
            ):
                spent = getattr(row, used) >= getattr(row, most)
                if spent and (reason == "request_budget_exhausted" or not row.check_once):
                    self._no("I10", f"{row.id}: waits with {used} {getattr(row, used)} of {getattr(row, most)}")

    def _questions(self, rows: dict[int, Any]) -> None:
        """I11: at most one open question an operation; a stop that asks has one, an end that is over has none."""
        sql = self._world.sql
        for op, row in rows.items():
            open_ = sql.execute(
                "SELECT reason FROM escalation WHERE operation=? AND decided_at IS NULL", (op,)
            ).fetchall()
            if len(open_) > 1:
                self._no("I11", f"{row.id}: {len(open_)} open questions")
            if row.status == "escalated" and not open_:
                self._no("I10", f"{row.id}: escalated without an open question")
            if row.status in ("succeeded", "closed") and open_:
                self._no("E7", f"{row.id}: {row.status}, and the question {open_[0][0]} is open")
            if row.status == "escalated" and open_ and open_[0][0] != row.stop_reason:
                self._no("E7", f"{row.id}: stopped as {row.stop_reason}, asked is {open_[0][0]}")
        twice = sql.execute('SELECT escalation_id FROM "grant" GROUP BY escalation_id HAVING count(*) > 1').fetchone()
        if twice is not None:
            self._no("I12", f"the question {twice[0]} was granted twice")
        for key in sql.execute("SELECT origin, account, down_since FROM origin_state").fetchall():
            if key[2] is not None:
                self._down.setdefault(key[:2], self._intents)
            else:
                self._down.pop(key[:2], None)
        known = {tuple(k) for k in sql.execute("SELECT origin, account FROM origin_state").fetchall()}
        self._down = {k: v for k, v in self._down.items() if k in known}

    def _grant(self, op: int, escalation: str, version: int, body: str) -> None:
        """I12: bound to what was painted, used once."""
        grant = json.loads(body)
        shown = self._shown.get(grant["card_digest"])
        if shown is None:
            self._no("I12", f"grant {grant['grant_id']}: no such card was painted")
        elif shown != (escalation, version):
            self._no("I12", f"grant {grant['grant_id']}: shown {shown}, used on {(escalation, version)}")
        if escalation in self._granted:
            self._no("I12", f"the question {escalation} was granted twice")
        self._granted.add(escalation)

    # --- at the end ---------------------------------------------------------------------------------------------------

    def end(self) -> None:
        """The whole history, once everybody was healthy for long enough."""
        world = self._world
        now = world.now()
        for op, raw in self._rows.items():
            row = Row(*raw)
            if (
                row.status in ("waiting", "held", "awaiting_approval")
                and now.boot > row.deadline_boot + world.settle_ms
            ):
                self._no("I26", f"{row.id}: still {row.status}, {now.boot - row.deadline_boot} ms after its deadline")
            if row.lease_owner is not None and row.status not in ENDS:
                self._no("O2", f"{row.id}: leased by {self._owner(row.lease_owner)} at the end")
            del op
        for op, n, _ in self._waiting.values():
            row = Row(*self._rows[op])
            if row.status not in ENDS:
                self._no("I5", f"{row.id}: request {n} has no observation")
        self._unrecorded()
        for text in self._world.books():
            self._no("O6", text)
        events, last = world.sql.execute("SELECT count(*), coalesce(max(seq), 0) FROM event").fetchone()
        if events != last:
            self._no("I18", f"{events} events, numbered to {last}")
        sent = dict(
            world.sql.execute("SELECT operation, count(*) FROM event WHERE event='sent' GROUP BY operation").fetchall()
        )
        for op, raw in self._rows.items():
            row = Row(*raw)
            if sent.get(op, 0) != row.status_requests_used - row.carried:
                self._no(
                    "I4", f"{row.id}: {row.status_requests_used - row.carried} charges, {sent.get(op, 0)} audit intents"
                )

    def _unrecorded(self) -> None:
        """S9: an answer that came to a worker that nothing struck is recorded, unless a later lease or an end stood there."""
        for (name, n), (_, flight) in self._answers.items():
            if flight.process.dead or flight.process.stops != flight.stops:
                continue
            row = self._world.sql.execute(
                "SELECT o.epoch, o.status, (SELECT 1 FROM observation b WHERE b.operation=o.op AND b.n=?) "
                "FROM operation o WHERE o.id=?",
                (n, name),
            ).fetchone()
            if row[2] is None and row[0] == flight.epoch and row[1] not in ENDS:
                self._no("S9", f"{name}: the answer to request {n} came and was never recorded")


def _origin(url: str) -> str:
    return url.partition("/v1/")[0]
