"""Stored answers decided again under a contract, one after another, as a wait of its own would have gone.

Job: (record, contract, answers in order) -> what each would have led to. Must not know: stores, seals, what the
decisions are compared with.
Source: spec S8, O7; a stored reading replays to the same decision (decide.decide). Limits are the record's own.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore import decide, reading
from pollcore.contract import Contract
from pollcore.facts import (
    BootMs,
    Decision,
    Escalate,
    Fault,
    FaultKind,
    Instant,
    Memory,
    Moment,
    Observation,
    Operation,
    Status,
    Succeed,
    Wait,
)
from pollcore.outcome.record import MEAN_DRAW, after_reading

NO_BOOT: Final = "replay"
"""Boot times of the past are not known: the wall time of each answer counts."""


class Replayed(msgspec.Struct, frozen=True):
    """What one answer would have led to.

    *decision*: `wait`, `succeed`, or the reason of a stop, as `Stored.decision` says it. *whole*: the answer was kept
    whole; False: of a large one only what the contract of then could reach.
    """

    decision: str
    verdict: str
    state: str | None
    rule: str
    detail: str | None = None
    qualifiers: tuple[str, ...] = ()
    whole: bool = True


class Replay:
    """One operation from its beginning, under one contract. *first*: the number of its first stored answer."""

    def __init__(self, contract: Contract, operation: Operation, first: int) -> None:
        self._contract = contract
        self._operation = msgspec.structs.replace(
            operation,
            status=Status.WAITING,
            completed_polls=first - 1,
            transport_failures_used=0,
            rate_limited_used=0,
            rate_limited_in_a_row=0,
            provider_expires_at=None,
            guidance_until=None,
            check_once=False,
            last_known_state=None,
            memory=Memory(),
            stop_reason=None,
            stop_detail=None,
            stop_explanation=None,
            result=None,
        )

    def fault(self, kind: FaultKind, n: int, at: Instant, draw: float | None, waited: bool = False) -> Replayed:
        """No usable answer: it spends what it spent then. *waited*: it ended nothing then (R39: of several jobs)."""
        op = self._at(n)
        fault = Fault(kind, True, at, apart=waited and kind in decide.INTEGRATION_FAULTS)
        decision = self._decided(op, fault, op.memory, at, draw)
        return Replayed(
            decision=_name(decision), verdict="fault", state=None, rule=kind.value, detail=_detail(decision)
        )

    def answer(self, envelope: bytes, n: int, at: Instant, draw: float | None) -> Replayed | None:
        """The answer number *n*; None: it was not kept, or its step is none of the contract's."""
        op = self._at(n)
        found = reading.replayed(self._contract, op, envelope)
        if found is None:
            return None
        read, whole = found
        seen = read.observation
        decision = self._decided(op, seen, read.memory, at, draw)
        qualifiers = decision.result.qualifiers if isinstance(decision, Succeed) else ()
        return Replayed(
            decision=_name(decision),
            verdict=seen.verdict.value,
            state=seen.state,
            rule=read.rule,
            detail=_detail(decision),
            qualifiers=tuple(qualifiers),
            whole=whole,
        )

    def _at(self, n: int) -> Operation:
        """The record with request *n* charged; after a stop an operator let it go on, else there were no answer *n*."""
        return msgspec.structs.replace(self._operation, status=Status.WAITING, status_requests_used=n)

    def _decided(
        self, op: Operation, seen: Observation | Fault, memory: Memory, at: Instant, draw: float | None
    ) -> Decision:
        policy, now = self._contract.policy, Moment(at, BootMs(0), NO_BOOT)
        decision = decide.decide(op, seen, policy=policy, now=now, draw=MEAN_DRAW if draw is None else draw)
        self._operation = after_reading(op, seen, memory, decision, policy=policy, now=now)
        return decision


def _name(decision: Decision) -> str:
    match decision:
        case Wait():
            return "wait"
        case Succeed():
            return "succeed"
        case Escalate():
            return decision.reason.value


def _detail(decision: Decision) -> str | None:
    return decision.detail.value if isinstance(decision, Escalate) and decision.detail is not None else None
