"""One request out, one answer read and decided: from a taken claim to the write that records it.

Job: the order send -> read -> decide -> record of O7. Must not know: SQL, how an answer is parsed, how a delay is
chosen.
Source: spec O7, B4, T8, T11, H3, S9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from pollcore import decide, outcome, reading
from pollcore.controller.prepare import Ready
from pollcore.controller.questions import question_for
from pollcore.controller.shared import Shared
from pollcore.facts import (
    Answer,
    BootMs,
    Decision,
    Escalate,
    Exchange,
    Fault,
    FaultKind,
    Instant,
    Memory,
    Moment,
    Observation,
    Operation,
    Policy,
    StopDetail,
    StopReason,
    Verdict,
    Wait,
)
from pollcore.ports import UNPROVED, Chance, Claimed, Clock, Denial, Stored, Transport, Write

MAX_PAUSE_MS: Final = 2_000
"""L6: a worker that was paused so long between commit and send burns the charge instead of sending late."""
ENVELOPE_BYTES: Final = 2_048
LAST_BODY_BYTES: Final = 16_384
STEP_NOTE_MS: Final = 2_000
"""Wall and boot clock drifted apart by more than this since the request was planned: noted as `clock_step` (T9)."""


class Exchanger:
    """Carries out taken claims."""

    def __init__(
        self, transport: Transport, clock: Clock, chance: Chance, shared: Shared, forget: Callable[[str], None]
    ) -> None:
        """*forget*: told the credential whose token was refused."""
        self._transport = transport
        self._clock = clock
        self._chance = chance
        self._shared = shared
        self._forget = forget

    async def send(self, ready: Ready, claimed: Claimed) -> Answer | Fault:
        """Send the one request of *claimed*, unless this worker was paused since the charge was committed."""
        now = self._clock.now()
        if now.boot - claimed.charged_at.boot > MAX_PAUSE_MS or now.boot_id != claimed.charged_at.boot_id:
            return Fault(FaultKind.NOT_SENT, False, now.wall, "paused between charge and send")
        return await self._transport.send(ready.request, ready.secret)

    def record(self, ready: Ready, claimed: Claimed, brought: Answer | Fault) -> Write:
        """Read, decide and write down what a request brought. Total: our own failure stops this operation alone."""
        now = self._clock.now()
        try:
            return self._decided(ready, claimed, brought, now)
        except Exception as error:
            return self._internal(claimed, brought, ready.contract.policy, now, error)

    def _decided(self, ready: Ready, claimed: Claimed, brought: Answer | Fault, now: Moment) -> Write:
        operation = claimed.operation
        policy = ready.contract.policy
        observed, memory = self._read(ready, operation, brought, now)
        self._learn(ready, operation, observed, now)
        draw = self._chance.draw()
        decision = decide.decide(operation, observed, policy=policy, now=now, draw=draw, origin=ready.claim.origin)
        after = outcome.after_reading(operation, observed, memory, decision, policy=policy, now=now)
        events = outcome.reading_events(operation, after, observed, decision, now=now)
        if (note := step_note(ready.claim.operation, claimed.charged_at)) is not None:
            events = (msgspec.structs.replace(events[0], notes=(*events[0].notes, note)), *events[1:])
        asks = isinstance(decision, Escalate) and decision.asks
        return Write(
            after=after,
            fence_epoch=operation.epoch,
            events=events,
            stored=stored(claimed, observed, decision, brought, draw),
            open_question=question_for(after, decision, now, self._chance)
            if isinstance(decision, Escalate) and asks
            else None,
        )

    def lost(self, operation: Operation, n: int, policy: Policy) -> Write:
        """B4: the request *n* went out under a worker that died; it stays counted, its answer is recorded as lost."""
        now = self._clock.now()
        fault = Fault(FaultKind.ANSWER_LOST, True, now.wall, "the worker that sent it ended before the answer")
        draw = self._chance.draw()
        decision = decide.decide(operation, fault, policy=policy, now=now, draw=draw)
        after = outcome.after_reading(operation, fault, operation.memory, decision, policy=policy, now=now)
        return Write(
            after=after,
            fence_change=operation.change,
            events=outcome.reading_events(operation, after, fault, decision, now=now),
            stored=stored(Claimed(operation, (n,), now), fault, decision, fault, draw),
            open_question=question_for(after, decision, now, self._chance)
            if isinstance(decision, Escalate) and decision.asks
            else None,
        )

    def _read(
        self, ready: Ready, operation: Operation, brought: Answer | Fault, now: Moment
    ) -> tuple[Observation | Fault, Memory]:
        if isinstance(brought, Fault):
            return brought, operation.memory
        exchange = Exchange(ready.claim.step, ready.request.url, brought)
        return reading.read(ready.contract, operation, (exchange,), now)

    def _learn(self, ready: Ready, operation: Operation, observed: Observation | Fault, now: Moment) -> None:
        """Tell the other operations what this answer means for them."""
        origin, account = ready.claim.origin, operation.submitted.account
        if isinstance(observed, Fault):
            if observed.kind in decide.SPENDS_FAILURE_BUDGET:
                self._shared.faulted(operation, origin, now)
            return
        if observed.verdict is Verdict.TRANSPORT_FAILURE:
            self._shared.faulted(operation, origin, now)
        else:
            self._shared.answered(origin, account)
        if observed.guidance is not None and observed.http.code in (429, 503):
            until = observed.guidance.delay_ms
            self._shared.cool_down(operation, Instant(now.wall + until), BootMs(now.boot + until))
        credential, digest = operation.credential, ready.secret_digest
        if credential is None or digest is None:
            return
        if observed.http.code == 401:
            self._shared.denied(Denial(credential, origin, UNPROVED + digest if ready.bought else digest, now.wall))
            if ready.bought:
                self._forget(credential)
        elif observed.http.code < 400:
            self._shared.accepted(credential, origin, digest)

    def _internal(
        self, claimed: Claimed, brought: Answer | Fault, policy: Policy, now: Moment, error: Exception
    ) -> Write:
        """Our own assertion failed on this answer: stop this operation with a card instead of going on wrongly."""
        operation = claimed.operation
        text = f"pollconsole could not read this answer ({type(error).__name__})"
        stop = decide.stop(operation, StopReason.INTEGRATION_FAILURE, StopDetail.INTERNAL, explanation=text)
        after = outcome.after_stop(operation, stop, policy=policy, now=now)
        return Write(
            after=after,
            fence_epoch=operation.epoch,
            events=outcome.stop_events(operation, after, stop, now=now),
            stored=Stored(
                operation_id=operation.operation_id,
                n=claimed.intents[0],
                answered_at=now.wall,
                http_code=brought.status if isinstance(brought, Answer) else None,
                fault=None,
                state=None,
                verdict=Verdict.INTEGRATION.value,
                decision=stop.reason.value,
            ),
            open_question=question_for(after, stop, now, self._chance),
        )


def stored(
    claimed: Claimed, observed: Observation | Fault, decision: Decision, brought: Answer | Fault, draw: float
) -> Stored:
    """The observation row: clear figures, the envelope that the rules read, the body where the envelope cuts it."""
    choice = (
        "wait" if isinstance(decision, Wait) else decision.reason.value if isinstance(decision, Escalate) else "succeed"
    )
    if isinstance(observed, Fault):
        return Stored(
            operation_id=claimed.operation.operation_id,
            n=claimed.intents[0],
            answered_at=observed.at,
            http_code=None,
            fault=observed.kind.value,
            state=None,
            verdict="fault",
            decision=choice,
            draw=draw,
        )
    body = brought.body if isinstance(brought, Answer) else b""
    return Stored(
        operation_id=claimed.operation.operation_id,
        n=claimed.intents[0],
        answered_at=observed.http.answered_at,
        http_code=observed.http.code,
        fault=None,
        state=observed.state,
        verdict=observed.verdict.value,
        decision=choice,
        envelope=observed.envelope,
        last_body=body[:LAST_BODY_BYTES] if len(body) > ENVELOPE_BYTES else None,
        draw=draw,
    )


def step_note(planned: Operation, charged: Moment) -> str | None:
    """`clock_step` when the wall clock was moved while this operation waited (T9)."""
    if planned.next_poll_at is None or planned.due_boot is None or planned.boot_id != charged.boot_id:
        return None
    moved = (charged.wall - planned.next_poll_at) - (charged.boot - planned.due_boot)
    return f"clock_step {moved / 1000:+.0f} s" if abs(moved) > STEP_NOTE_MS else None
