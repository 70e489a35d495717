"""The write in place of a request: a stop, the end of a hold, or another time at which to look again.

Job: make it, fenced by the record as it was loaded. Must not know: which check found it, what would have been sent.
Source: spec O7, T8, T11, E7.
"""

from __future__ import annotations

from typing import Final

from pollcore import decide, grants, outcome, schedule
from pollcore.controller.questions import question_for
from pollcore.controller.shared import Shared
from pollcore.facts import (
    DelaySource,
    Escalate,
    Instant,
    Moment,
    Operation,
    Policy,
    Status,
    StopDetail,
    StopReason,
    Wait,
)
from pollcore.ports import Chance, Store, Write

RECHECK_MS: Final = 20_000
"""The longest that an operation waits for an origin that is down before it looks again."""
CAP_PAUSE_MS: Final = 1_000
"""How long an operation waits for a cap to have room, or a token to be bought; up to twice as long."""


class Unsent:
    """Makes the writes of operations that do not send now."""

    def __init__(self, store: Store, shared: Shared, chance: Chance) -> None:
        self._store = store
        self._shared = shared
        self._chance = chance

    def stop(self, operation: Operation, stop: Escalate, now: Moment) -> Write:
        """The write of a stop without a request."""
        after = outcome.after_stop(operation, stop, now=now)
        return Write(
            after=after,
            fence_change=operation.change,
            events=outcome.stop_events(operation, after, stop, now=now),
            open_question=question_for(after, stop, now, self._chance) if stop.asks else None,
        )

    def stop_for(
        self,
        operation: Operation,
        now: Moment,
        reason: StopReason,
        detail: StopDetail | None,
        text: str,
        *,
        origin: str | None = None,
    ) -> Write:
        """The write of a stop that the checks themselves found: *text* is its explanation."""
        cause = decide.cause_of(operation, reason, detail, origin=origin)
        stop = Escalate(status=Status.ESCALATED, reason=reason, detail=detail, explanation=text, cause=cause)
        return self.stop(operation, stop, now)

    async def end_hold(self, operation: Operation, now: Moment) -> Write:
        """The hold is over: its own question is settled, a held stop asks anew, a held wait goes on."""
        question = next(iter(await self._store.questions(operation.operation_id)), None)
        ended = grants.end_of_hold(operation, question, now=now, new_id=f"esc-{self._chance.token(6)}")
        return Write(
            after=ended.operation or operation,
            fence_change=operation.change,
            events=ended.events,
            open_question=ended.opened,
            close_question=ended.closed,
        )

    def shared_wait(
        self, operation: Operation, policy: Policy, now: Moment, per_minute: int | None, most: int
    ) -> Write | None:
        """Pauses and cool-downs, before any lease (O7). *most*: operations that one request can ask for."""
        cooldown = self._shared.cooldown(operation, now)
        pause = self._shared.pause(operation, now)
        cooling = cooldown.until_boot - now.boot if cooldown is not None else 0
        paused = pause.until - now.wall if pause is not None else 0
        left = max(cooling, paused)
        if left <= 0:
            return None
        decision = decide.shared_wait(
            operation,
            left,
            policy=policy,
            now=now,
            draw=self._chance.draw(),
            source=DelaySource.SHARED_COOLDOWN if cooling >= paused else DelaySource.PAUSED,
            waiting=1 if cooldown is None else self._shared.place(operation, cooldown.until_boot, most),
            per_minute=per_minute,
        )
        if isinstance(decision, Escalate):
            return self.stop(operation, decision, now)
        return self.reschedule(operation, decision, now)

    def wait_for_origin(self, operation: Operation, origin: str, policy: Policy, now: Moment) -> Write:
        """T11: its origin is down, and another operation asks it now or next."""
        room, draw = schedule.room(operation, now), self._chance.draw()
        again = self._shared.look_again(operation, origin, now, RECHECK_MS, draw, room)
        return self._behind_origin(operation, again, policy, now)

    def turn_after_outage(
        self, operation: Operation, origin: str, policy: Policy, now: Moment, most: int
    ) -> Write | None:
        """T11: it waited for its origin, which is up: the wait for its turn; None: go. *most*: as `shared_wait`."""
        if operation.delay_source is not DelaySource.ORIGIN_DOWN or self._shared.is_down(operation, origin):
            return None
        room = schedule.room(operation, now)
        left = self._shared.let_go(operation, origin, now, self._chance.draw(), room, most)
        return self._behind_origin(operation, left, policy, now) if left > 0 else None

    def _behind_origin(self, operation: Operation, left: int, policy: Policy, now: Moment) -> Write:
        decision = decide.shared_wait(operation, left, policy=policy, now=now, draw=0.0, source=DelaySource.ORIGIN_DOWN)
        if isinstance(decision, Escalate):
            return self.stop(operation, decision, now)
        return self.reschedule(operation, decision, now)

    def soon(
        self,
        operation: Operation,
        now: Moment,
        draw: float | None = None,
        source: DelaySource = DelaySource.CAPPED,
    ) -> Write:
        """The provider's caps are reached, or a token is being bought: look again a little later, quietly.

        *draw*: the same for those that would have gone together.
        """
        at = Instant(now.wall + CAP_PAUSE_MS + int(CAP_PAUSE_MS * (self._chance.draw() if draw is None else draw)))
        wait = Wait(next_poll_at=at, delay_ms=at - now.wall, source=source)
        after = outcome.after_schedule(operation, wait, now=now)
        return Write(after=after, fence_change=operation.change)

    def reschedule(self, operation: Operation, wait: Wait, now: Moment) -> Write:
        """Move the next request without one having been sent; told once, not at every look."""
        after = outcome.after_schedule(operation, wait, now=now)
        told = operation.delay_source is wait.source is DelaySource.ORIGIN_DOWN
        events = () if told else outcome.schedule_events(operation, after, wait, now=now)
        return Write(after=after, fence_change=operation.change, events=events)
