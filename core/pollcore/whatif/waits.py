"""One wait of a simulation, by the rules that real waits follow.

Job: from a due wait, and from what its request brought, to when it is due next or how it ended. Must not know: the
order of events, figures.

The ordinary step (a running job, no guidance, requests left) and the look at an origin that is down are worked out on
plain numbers with the functions of `schedule`, for speed; tests hold both against `decide`. Every other step goes
through `decide` and `outcome` with a real record.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore import decide, outcome, schedule
from pollcore.facts import (
    BootMs,
    DelaySource,
    Escalate,
    Fault,
    FaultKind,
    Guidance,
    HttpFact,
    Instant,
    Moment,
    Observation,
    Operation,
    Policy,
    ResultPointer,
    Schedule,
    StopReason,
    Verdict,
    Wait,
)
from pollcore.whatif.parameters import Parameters, Source
from pollcore.whatif.provider import Fate, until_next_minute
from pollcore.whatif.rules import Worker

BEGINNING: Final = Instant(1_767_225_600_000)
"""2026-01-01: what a simulated time counts from. No rule depends on the date."""
BOOT_ID: Final = "simulation"
ORIGIN: Final = "https://provider.invalid"
_RESULT: Final = ResultPointer({"simulated": True})
_REFUSED: Final = "a simulated request found no connection"


def moment(at: int) -> Moment:
    """All clocks, *at* ms from the beginning."""
    return Moment(Instant(BEGINNING + at), BootMs(at), BOOT_ID)


class Waiting:
    """A wait in plain numbers, ms from the beginning. *ends*: its job. *record*: as of its last step by the rules."""

    __slots__ = ("at", "deadline", "ends", "index", "kept", "next", "polls", "record", "row", "used")

    def __init__(self, index: int, at: int, ends: int, deadline: int, next_: int) -> None:
        self.index = index
        self.at = at
        self.ends = ends
        self.deadline = deadline
        self.next = next_
        self.used = 0
        self.polls = 0
        self.row = 0
        self.kept = False
        """It waits for an origin that is down, or for its turn after that (T11)."""
        self.record: Operation | None = None

    @property
    def due(self) -> int:
        return min(self.next, self.deadline)


class Steps:
    """The steps of all waits under one contract. *template*: the record of a wait that began at the beginning.

    A step returns the reason of a stop, `SUCCEEDED`, or None: the wait goes on, `next` says when.
    """

    def __init__(
        self,
        template: Operation,
        policy: Policy,
        worker: Worker,
        asked: Parameters,
        draw: Source,
        total_ms: int,
        per_minute: int | None = None,
    ) -> None:
        """*per_minute*: our own cap on requests."""
        self._template = template
        self._per_minute = per_minute
        self._policy = policy
        self._plan: Schedule = policy.schedule
        self._worker = worker
        self._shared = worker.shared
        self._draw = draw
        self._total_ms = total_ms
        self._guidance = None if asked.guidance is None else Guidance(asked.guidance, "Retry-After", True)
        self._says_when = asked.retry_after
        self._span = template.deadline_at - BEGINNING
        self.most = template.max_status_requests
        self._account = template.submitted.account
        self.cooling = False
        """A cool-down may be in force."""
        self.troubled = False
        """The newest requests found no connection."""

    def submit(self, index: int, at: int, ends: int) -> Waiting:
        """A wait that is handed over at *at*."""
        now = moment(at)
        first = schedule.first_poll(self._plan, started_at=now.wall, now=now, draw=self._draw(), room_ms=self._span)
        return Waiting(index, at, ends, at + self._span, first.next_poll_at - BEGINNING)

    # --- before a request ---------------------------------------------------------------------------------------------

    def stop_at_limit(self, wait: Waiting, at: int) -> StopReason:
        """X2: the deadline has come."""
        found = decide.before(self._record_of(wait), now=moment(at))
        assert isinstance(found, Escalate), "due at its deadline, a wait stops"
        return found.reason

    def cooled(self, wait: Waiting, at: int) -> StopReason | bool:
        """T8: True: a cool-down moved the request, or the reason of the stop that it means; False: it may go on."""
        now = moment(at)
        cooldown = self._shared.cooldown(self._template, now)
        if cooldown is None:
            self.cooling = False
            return False
        record = self._record_of(wait)
        decision = decide.shared_wait(
            record,
            cooldown.until_boot - now.boot,
            policy=self._policy,
            now=now,
            draw=self._draw(),
            source=DelaySource.SHARED_COOLDOWN,
            waiting=self._shared.place(self._template, cooldown.until_boot),
            per_minute=self._per_minute,
        )
        if isinstance(decision, Escalate):
            return decision.reason
        wait.record, wait.kept = outcome.after_schedule(record, decision, now=now), False
        wait.next = decision.next_poll_at - BEGINNING
        return True

    def kept_back(self, wait: Waiting, at: int) -> bool:
        """T11: the origin is down and another wait asks it, or it is up and this one's turn has not come; the next look
        is drawn."""
        now, room = moment(at), wait.deadline - at
        if not self._shared.may_probe(self._template, ORIGIN, now):
            again = self._shared.look_again(self._template, ORIGIN, now, self._worker.recheck_ms, self._draw(), room)
            wait.next, wait.kept = at + look_again(again, room), True
            return True
        if self._shared.is_down(self._template, ORIGIN):
            self._shared.probing(self._record_of(wait), ORIGIN, now, self._total_ms)
        elif wait.kept:
            left = self._shared.let_go(self._record_of(wait), ORIGIN, now, self._draw(), room)
            if left > 0:
                wait.next = at + look_again(left, room)
                return True
        return False

    def capped(self, wait: Waiting, at: int) -> None:
        """T8: no room under a cap."""
        wait.kept = False
        pause = self._worker.cap_pause_ms
        wait.next = at + pause + int(pause * self._draw())

    # --- after it -----------------------------------------------------------------------------------------------------

    def answer(self, wait: Waiting, fate: Fate, at: int) -> StopReason | bool | None:
        """What a counted request brought: a stop's reason, True: the job's end was seen, None: the wait goes on."""
        wait.kept = False
        if fate is Fate.ANSWERED and at < wait.ends and self._guidance is None and wait.used < self.most:
            if self.troubled:
                self.troubled = False
                self._shared.answered(ORIGIN, self._account)
            wait.polls += 1
            wait.row = 0
            wait.next = at + plain_delay(self._plan, wait.polls, self._draw(), wait.deadline - at)
            return None
        return self._by_the_rules(wait, fate, at)

    def _by_the_rules(self, wait: Waiting, fate: Fate, at: int) -> StopReason | bool | None:
        now, record = moment(at), self._record_of(wait)
        brought = self._reading(wait, fate, at)
        self._learn(record, brought, now)
        decision = decide.decide(record, brought, policy=self._policy, now=now, draw=self._draw(), origin=ORIGIN)
        after = outcome.after_reading(record, brought, record.memory, decision, policy=self._policy, now=now)
        wait.record = after
        wait.polls, wait.row = after.completed_polls, after.rate_limited_in_a_row
        if isinstance(decision, Wait):
            wait.next = decision.next_poll_at - BEGINNING
            return None
        return decision.reason if isinstance(decision, Escalate) else True

    def _reading(self, wait: Waiting, fate: Fate, at: int) -> Observation | Fault:
        instant = Instant(BEGINNING + at)
        if fate is Fate.REFUSED:
            return Fault(FaultKind.CONNECTION_REFUSED, False, instant, _REFUSED)
        if fate is Fate.LIMITED:
            guidance = Guidance(until_next_minute(at), "Retry-After", True) if self._says_when else None
            return Observation(verdict=Verdict.RATE_LIMITED, http=HttpFact(429, instant, instant), guidance=guidance)
        fact = HttpFact(200, instant, instant)
        if at >= wait.ends:
            return Observation(verdict=Verdict.SUCCEEDED, http=fact, state="succeeded", result=_RESULT, job_seen=True)
        return Observation(verdict=Verdict.WAITING, http=fact, state="running", guidance=self._guidance, job_seen=True)

    def _learn(self, record: Operation, brought: Observation | Fault, now: Moment) -> None:
        """As the controller learns from an answer (T8, T11)."""
        if isinstance(brought, Fault):
            self.troubled = True
            self._shared.faulted(record, ORIGIN, now)
            return
        if self.troubled:
            self.troubled = False
            self._shared.answered(ORIGIN, self._account)
        if brought.http.code == 429 and brought.guidance is not None:
            until = brought.guidance.delay_ms
            self.cooling = True
            self._shared.cool_down(record, Instant(now.wall + until), BootMs(now.boot + until))

    def _record_of(self, wait: Waiting) -> Operation:
        """The record as the store would have it now."""
        record = wait.record
        if record is None:
            record = msgspec.structs.replace(
                self._template,
                operation_id=f"op-{wait.index}",
                started_at=Instant(BEGINNING + wait.at),
                submitted_at=Instant(BEGINNING + wait.at),
                deadline_at=Instant(BEGINNING + wait.deadline),
                deadline_boot=BootMs(wait.deadline),
            )
        return msgspec.structs.replace(
            record,
            status_requests_used=wait.used,
            completed_polls=wait.polls,
            rate_limited_in_a_row=wait.row,
            next_poll_at=Instant(BEGINNING + wait.next),
            due_boot=BootMs(wait.due),
        )


def plain_delay(plan: Schedule, polls: int, draw: float, room_ms: int) -> int:
    """ms until the next look after a running job's answer without guidance: what `decide` makes of it (T1, T4)."""
    return min(schedule.local_delay(plan, polls, 0, draw), room_ms)


def look_again(left_ms: int, room_ms: int) -> int:
    """ms until a wait looks again at an origin that is down: what `decide.shared_wait` makes of *left_ms* (T11)."""
    return min(max(schedule.SHORTEST_DELAY, left_ms), room_ms)
