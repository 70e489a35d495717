"""Invariants of charges and answers: I1-I8, I15, I17, L3, T6, T8, T11, S9, H3, B2, B4, B5, X7.

Job: look at each new intent and each new observation in the commit that brought it. Must not know: limits, questions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pollcore.controller.exchange import MAX_PAUSE_MS
from pollcore.controller.shared import PROBE_GRACE_MS
from pollcore.facts import MINUTE
from pollcore.reading import draft
from pollcore.schedule import min_delay
from tests.sim import contracts
from tests.sim.ledger import ENDS, FAILS, SLACK_MS, TTL_MS, Account, Ledger, Row, origin_of

if TYPE_CHECKING:
    from tests.sim.things import Flight

ANSWER_MS = 30_000
"""The longest time of one answer in the simulated contracts."""
ABOUT_THE_JOB = frozenset(one.value for one in draft.ABOUT_THE_JOB)


class Charges(Ledger):
    """What is checked of requests."""

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
        self._vouched(op, row)
        self._takeover(op, old, row, now)
        if now.boot - boot <= MAX_PAUSE_MS and not self._world.acting_late:
            # else the charge is burned: its worker was stopped before the commit
            self._shared(op, row, boot, now)

    def _vouched(self, op: int, row: Any) -> None:
        """X7: nothing is sent under a contract that nobody tried before an operator said what asking is."""
        text, use = self._world.sql.execute(
            "SELECT c.text, u.use FROM operation o JOIN contract c ON c.no=o.contract "
            "LEFT JOIN contract_use u ON u.digest=c.digest WHERE o.op=?",
            (op,),
        ).fetchone()
        says = 'observation = "action"' in text
        if use is None and not says and f'tested_live = "{contracts.UNTRIED}"' in text:
            self._no("X7", f"{row.id}: charged under a contract whose first use is undecided")

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
                "SELECT count(DISTINCT i.request) FROM operation o JOIN intent i ON i.operation=o.op "
                "AND i.n=o.status_requests_used WHERE o.provider=? AND o.lease_owner IS NOT NULL",
                (row.provider,),
            ).fetchone()[0]
            if flying > policy.concurrency:
                self._no("T8", f"{row.provider}: {flying} requests in flight, {policy.concurrency} are allowed")
        if policy.per_minute is not None:
            minute = sql.execute(
                "SELECT count(DISTINCT r.id) FROM intent i JOIN operation o ON o.op=i.operation "
                "JOIN request r ON r.id=i.request "
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
        # who recorded nothing so long after its answer was due is replaced
        now = self._world.now().boot
        others = sql.execute(
            "SELECT o.id, i.n FROM operation o JOIN intent i ON i.operation=o.op AND i.n=o.status_requests_used "
            "JOIN request r ON r.id=i.request JOIN name n ON n.no=r.origin "
            "WHERE o.op <> ? AND o.lease_owner IS NOT NULL AND n.text=? AND o.account=? AND i.id > ? AND i.boot > ?",
            (op, origin, row.account, since, now - ANSWER_MS - PROBE_GRACE_MS),
        ).fetchall()
        # a charge whose commit was not known to be done holds a lease, and no request
        flying = [name for name, n in others if (name, n) in self._flights and not self._flights[name, n].over]
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

    def _set_apart(self, row: Any, account: Account, flight: Flight, verdict: str) -> None:
        """R39: an answer for several jobs that is about none ends nobody; each is asked alone until one is about it."""
        if flight.reply.about_none:
            account.alone = True
            if verdict != "waiting":
                self._no("R39", f"{row.id}: an answer about none of {flight.others + 1} jobs was read as {verdict}")
        elif account.alone and verdict in ABOUT_THE_JOB:
            account.alone = False

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
        self._set_apart(row, account, flight, verdict)
        account.floor = boot + min_delay(policy.schedule)
        account.obligation = boot + reply.wait_ms if reply.wait_ms is not None else 0
        account.steps = self._world.wall_steps
        if reply.wait_ms and code in (429, 503):
            key = (row.provider, row.account, row.credential)
            self._cooldowns[key] = max(self._cooldowns.get(key, 0), boot + reply.wait_ms)
        if code == 401 and flight.secret is not None:
            self._denied[flight.secret, origin_of(flight.url)] = (row.id, self._commits)
        if reply.final == "succeeded" and policy.schedule.settle_delay is None and row.status != "succeeded":
            self._no("S9", f"{row.id}: request {flight.n} brought the job's success; it is {row.status} ({decision})")
        if reply.final is not None and policy.schedule.settle_delay is None and row.status not in ENDS:
            self._no("S9", f"{row.id}: request {flight.n} brought {reply.final}; it is {row.status} ({decision})")
