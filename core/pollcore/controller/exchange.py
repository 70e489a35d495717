"""One request out, one answer read and decided: from a taken claim to the write that records it.

Job: the order send -> read -> decide -> record of O7. Must not know: SQL, how an answer is parsed, how a delay is
chosen.
Source: spec O7, B4, T8, T11, H3, S9.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from pollcore import decide, outcome, reading
from pollcore.contract import Contract, batch_requests, requests
from pollcore.controller.contracts import Contracts
from pollcore.controller.lessons import Heard, Lessons, Went, went
from pollcore.controller.prepare import Ready
from pollcore.controller.questions import question_for
from pollcore.controller.shared import Shared
from pollcore.facts import (
    Answer,
    ContractError,
    Decision,
    Escalate,
    Exchange,
    Fault,
    FaultKind,
    Memory,
    Moment,
    Observation,
    Operation,
    Policy,
    Refused,
    StopDetail,
    StopReason,
    Verdict,
    Wait,
)
from pollcore.ports import Chance, Claimed, Clock, Stored, Transport, Write

MAX_PAUSE_MS: Final = 2_000
"""L6: a worker that was paused so long between commit and send burns the charge instead of sending late."""
STEP_NOTE_MS: Final = 2_000
"""Wall and boot clock drifted apart by more than this since the request was planned: noted as `clock_step` (T9)."""


class Out:
    """One request that is out, with every operation that it asks for: one, or several that share it (R39)."""

    def __init__(self, *members: tuple[Ready, Claimed]) -> None:
        self.members = members
        self.opened = reading.Opened() if len(members) > 1 else None
        self.draw: float | None = None
        """One draw for all of them: what was asked together is due together."""

    @property
    def others(self) -> int:
        return len(self.members) - 1


class Exchanger:
    """Carries out taken claims."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        chance: Chance,
        shared: Shared,
        forget: Callable[[str], None],
        contracts: Contracts,
    ) -> None:
        """*forget*: told the credential whose token was refused. *contracts*: of records that moved meanwhile."""
        self._contracts = contracts
        self._transport = transport
        self._clock = clock
        self._chance = chance
        self._lessons = Lessons(shared, forget)
        self.taught: Callable[[Contract, Sequence[str], Went, Moment], None] = lambda *_: None
        """Told of each request what it says of sharing one (R39): contract, its operations, what became of it."""

    async def send(self, out: Out) -> Answer | Fault:
        """Send one request, unless this worker was paused since its charges were committed. Total: a failure of ours is
        an answer that was lost, because the request may have left."""
        try:
            return await self._send(out)
        except Exception as error:
            why = f"pollconsole could not send this request ({type(error).__name__})"
            return Fault(FaultKind.ANSWER_LOST, True, self._clock.now().wall, why)

    async def _send(self, out: Out) -> Answer | Fault:
        now = self._clock.now()
        ready, claimed = out.members[0]
        if now.boot - claimed.charged_at.boot > MAX_PAUSE_MS or now.boot_id != claimed.charged_at.boot_id:
            return Fault(FaultKind.NOT_SENT, False, now.wall, "paused between charge and send")
        request = ready.request
        if out.others:
            # of those that were really claimed: one whose claim was refused is not asked for
            operations = tuple(claimed.operation for _, claimed in out.members)
            try:
                request = batch_requests.batch_request(ready.contract, operations)
            except Refused as refused:
                return Fault(FaultKind.NOT_SENT, False, now.wall, str(refused))
        return await self._transport.send(request, ready.secret)

    def record(self, out: Out, brought: Answer | Fault) -> list[Write]:
        """Read, decide and write down what a request brought, for each of its operations; what it teaches about the
        others of the store is learned once. Total: our own failure stops one operation alone."""
        now = self._clock.now()
        writes = []
        heard: Heard | None = None
        for ready, claimed in out.members:
            try:
                observed, memory = self._read(out, ready, claimed.operation, brought)
                heard = Heard.louder(heard, Heard(ready, claimed.operation, observed))
                writes.append(self._decided(out, ready, claimed, brought, observed, memory, now))
            except Exception as error:
                writes.append(self._internal(claimed, brought, now, error))
        if heard is not None:
            # with a failure of ours the lesson is lost, the answer is not
            with contextlib.suppress(Exception):
                self._learn(out, brought, heard, now)
        return writes

    def _learn(self, out: Out, brought: Answer | Fault, heard: Heard, now: Moment) -> None:
        asked = [claimed.operation for _, claimed in out.members]
        self._lessons.learn(heard, asked, now)
        opened = out.opened
        listed, costly = (opened.listed, opened.is_too_costly) if opened is not None else (False, False)
        told = went(heard, brought, len(asked), listed, costly=costly)
        if told is not None:
            self.taught(heard.ready.contract, [one.operation_id for one in asked], told, now)

    async def again(self, out: Out, ready: Ready, claimed: Claimed, brought: Answer | Fault) -> Write:
        """The same answer for one operation whose record moved meanwhile; what it teaches was learned before.

        It is read and decided under the contract that the record has now (S8): another one may have been adopted while
        the request was out. Raises StoreUnusable: that contract cannot be had now.
        """
        try:
            contract = await self._contracts.of(claimed.operation.contract_digest)
        except ContractError as error:
            return self._broken(claimed, brought, self._clock.now(), StopDetail.CONTRACT_MISSING, str(error))
        now = self._clock.now()
        try:
            current = msgspec.structs.replace(ready, contract=contract)
            observed, memory = self._read(out, current, claimed.operation, brought)
            return self._decided(out, current, claimed, brought, observed, memory, now)
        except Exception as error:
            return self._internal(claimed, brought, now, error)

    def _decided(
        self,
        out: Out,
        ready: Ready,
        claimed: Claimed,
        brought: Answer | Fault,
        observed: Observation | Fault,
        memory: Memory,
        now: Moment,
    ) -> Write:
        operation = claimed.operation
        policy = ready.contract.policy
        draw = self._draw(out)
        decision = decide.decide(operation, observed, policy=policy, now=now, draw=draw, origin=ready.claim.origin)
        after = outcome.after_reading(operation, observed, memory, decision, policy=policy, now=now)
        events = outcome.reading_events(operation, after, observed, decision, now=now)
        told = (shared_note(out.others), step_note(ready.claim.operation, claimed.charged_at))
        if any(told):
            notes = (*events[0].notes, *(note for note in told if note is not None))
            events = (msgspec.structs.replace(events[0], notes=notes), *events[1:])
        asks = isinstance(decision, Escalate) and decision.asks
        return Write(
            after=after,
            fence_epoch=operation.epoch,
            events=events,
            stored=stored(claimed, observed, decision, brought, draw, out.others),
            open_question=question_for(after, decision, now, self._chance)
            if isinstance(decision, Escalate) and asks
            else None,
        )

    def _draw(self, out: Out) -> float:
        if not out.others:
            return self._chance.draw()
        if out.draw is None:
            out.draw = self._chance.draw()
        return out.draw

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

    @staticmethod
    def _read(
        out: Out, ready: Ready, operation: Operation, brought: Answer | Fault
    ) -> tuple[Observation | Fault, Memory]:
        if isinstance(brought, Fault):
            if out.others and brought.kind in decide.INTEGRATION_FAULTS:
                apart = msgspec.structs.replace(operation.memory, alone=True)
                return msgspec.structs.replace(brought, apart=True), apart
            return brought, operation.memory
        exchange = Exchange(ready.claim.step, ready.request.url, brought, out.others)
        child = ready.claim.operation.memory.values.get(requests.EACH)
        if child is not None:
            # whatever an adopted contract made of the answer before, this one is about the child that was asked for
            values = {**operation.memory.values, requests.EACH: child}
            memory = msgspec.structs.replace(operation.memory, values=values)
            operation = msgspec.structs.replace(operation, memory=memory)
        # what the readings share was found under the contract that the request was made by
        same = ready.contract.digest == out.members[0][0].contract.digest
        return reading.read(ready.contract, operation, (exchange,), out.opened if same else None)

    def _internal(self, claimed: Claimed, brought: Answer | Fault, now: Moment, error: Exception) -> Write:
        """Our own assertion failed on this answer: stop this operation with a card instead of going on wrongly."""
        text = f"pollconsole could not read this answer ({type(error).__name__})"
        return self._broken(claimed, brought, now, StopDetail.INTERNAL, text)

    def _broken(self, claimed: Claimed, brought: Answer | Fault, now: Moment, detail: StopDetail, text: str) -> Write:
        """What came cannot be read by us: recorded as a stop of this operation."""
        operation = claimed.operation
        stop = decide.stop(operation, StopReason.INTEGRATION_FAILURE, detail, explanation=text)
        after = outcome.after_stop(operation, stop, now=now)
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
    claimed: Claimed,
    observed: Observation | Fault,
    decision: Decision,
    brought: Answer | Fault,
    draw: float,
    others: int = 0,
) -> Stored:
    """The observation row: clear figures, the envelope that the rules read, the body where the envelope cuts it.

    *others*: operations that the answer was about as well (R39). Its body, of which each would keep a copy, is then
    kept where the wait stops alone: the envelope holds the job's own entry.
    """
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
    body = brought.body if isinstance(brought, Answer) and not (others and isinstance(decision, Wait)) else b""
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
        last_body=reading.body_beside(observed.envelope, body),
        draw=draw,
    )


def shared_note(others: int) -> str | None:
    """What the story of each operation says of a request that asked for several (R39)."""
    return f"one request with {others} other{'' if others == 1 else 's'}" if others else None


def step_note(planned: Operation, charged: Moment) -> str | None:
    """`clock_step` when the wall clock was moved while this operation waited (T9)."""
    if planned.next_poll_at is None or planned.due_boot is None or planned.boot_id != charged.boot_id:
        return None
    moved = (charged.wall - planned.next_poll_at) - (charged.boot - planned.due_boot)
    return f"clock_step {moved / 1000:+.0f} s" if abs(moved) > STEP_NOTE_MS else None
