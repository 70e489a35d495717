"""What the next operator must know, in one document.

Job: read open cards, decisions since a time, what ends soon, what is held or paused, live sessions, the audit's head,
which core runs. Must not know: output. Texts of providers and callers are raw here. Nothing is changed.
Source: spec V4, V5, O8, A4, A5, E10.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from pollconsole import documents
from pollconsole.bridge.chain_views import chain_state
from pollconsole.bridge.event_pages import DECISIONS, Wanted, pages
from pollconsole.bridge.pausing import pauses
from pollconsole.bridge.waiting import is_running, silence_of
from pollconsole.causes import Cause, by_cause, by_time_left
from pollcore.facts import (
    HOUR,
    AuditEvent,
    Escalation,
    EventName,
    Instant,
    Moment,
    Operation,
    PollconsoleError,
    Status,
    deadline_left,
    iso,
)

if TYPE_CHECKING:
    from pollcore.assembly import Core

SOON_MS: Final = HOUR
"""What ends within this time is named."""
MAX_LISTED: Final = 200
"""Of each kind; how many there are beyond is counted."""
MAX_LIVE: Final = 100_000
_LIVE: Final = tuple(status for status in Status if not status.is_end)
_RUNNING: Final = frozenset({Status.WAITING, Status.HELD, Status.AWAITING_APPROVAL})


async def handover(core: Core, since: Instant) -> dict[str, Any]:
    """The document of `handover --json`. *since*: from when decisions are told. Raises StoreUnusable."""
    from pollcore.ports import Filter

    now = core.clock.now()
    live = await core.store.operations(Filter(statuses=_LIVE, limit=MAX_LIVE))
    asked = await core.store.asked()
    ended = await core.store.operations(Filter(statuses=tuple(s for s in Status if s.is_end), limit=MAX_LISTED))
    decided, others = await _decisions(core, since)
    soon = sorted((op for op in live if _ends_soon(op, now)), key=lambda op: op.deadline_at)
    held = sorted((op for op in live if op.status is Status.HELD), key=lambda op: op.hold_until or 0)
    questions = [*asked, *((None, q) for q in await core.store.credential_questions())]
    cards = _by_cause(questions, now)
    return {
        "at": iso(now.wall),
        "since": iso(since),
        "core": await _core(core, now),
        "operations": {status: n for status, n in (await core.store.counts()).items() if status != "questions" and n},
        "open_cards": cards[:MAX_LISTED],
        "open_cards_count": len(cards),
        "open_questions_count": len(questions),
        "decided": decided,
        "decided_more": others,
        "ends_soon": [_ending(op, now) for op in soon[:MAX_LISTED]],
        "ends_soon_count": len(soon),
        "held": [
            {**_named(op), "hold_until": None if op.hold_until is None else iso(op.hold_until)}
            for op in held[:MAX_LISTED]
        ],
        "held_count": len(held),
        "paused": [one.document for one in await pauses(core)],
        "sessions": [documents.session(one) for one in await core.actions.sessions()],
        "audit": await _audit(core),
        "ended_last": [{**_named(op), "status": op.status.value} for op in ended[:10]],
    }


def _named(operation: Operation) -> dict[str, Any]:
    given = operation.submitted
    return {
        "operation_id": operation.operation_id,
        "provider": given.provider,
        "account": given.account,
        "label": given.label,
    }


def _ends_soon(operation: Operation, now: Moment) -> bool:
    """Whatever stands still for an answer ends as well; only what has passed there already is no news."""
    left = deadline_left(operation, now)
    return left <= SOON_MS and (left > 0 or operation.status in _RUNNING)


def _ending(operation: Operation, now: Moment) -> dict[str, Any]:
    return {
        **_named(operation),
        "status": operation.status.value,
        "deadline_at": iso(operation.deadline_at),
        "left_ms": max(0, deadline_left(operation, now)),
        "requests_left": operation.requests_left,
        "next_poll_at": None if operation.next_poll_at is None else iso(operation.next_poll_at),
    }


def _by_cause(questions: Sequence[tuple[Operation | None, Escalation]], now: Moment) -> list[dict[str, Any]]:
    """One entry a cause (E10) with its oldest operation; what ends soonest first, as the console has them."""
    operations = {operation.operation_id: operation for operation, _ in questions if operation is not None}
    causes = by_time_left(by_cause([question for _, question in questions], operations), now.wall)
    return [_card(cause, operations.get(cause.questions[0].operation_id), now) for cause in causes]


def _card(cause: Cause, operation: Operation | None, now: Moment) -> dict[str, Any]:
    question = cause.questions[0]
    ends_at, expires_at = cause.ends_at(now.wall), cause.expires_at(now.wall)
    return {
        "reason": question.reason.value,
        "detail": question.detail,
        "count": len(cause.questions),
        "asked_at": iso(question.asked_at),
        "waiting_ms": max(0, now.wall - question.asked_at),
        "expires_at": None if expires_at is None else iso(expires_at),
        "ends_at": None if ends_at is None else iso(ends_at),
        "passed": ends_at is not None and ends_at <= now.wall,
        "seen": any(q.seen_at is not None for q in cause.questions),
        "asked_by": question.asked_by,
        "credential": question.cause.partition(":")[2] if operation is None else None,
        **(_named(operation) if operation is not None else dict.fromkeys(_NAMES)),
    }


_NAMES: Final = ("operation_id", "provider", "account", "label")


async def _decisions(core: Core, since: Instant) -> tuple[list[dict[str, Any]], int]:
    """The newest decisions since then, oldest first, and how many older ones are left out."""
    found: list[AuditEvent] = []
    count = 0
    async for page in pages(core, None, Wanted(names=DECISIONS, since=since)):
        count += len(page)
        found = [*found, *page][-MAX_LISTED:]
    return [_decision(event) for event in found], count - len(found)


def _decision(event: AuditEvent) -> dict[str, Any]:
    return {
        "at": iso(event.at),
        "event": event.event.value,
        "granted": event.event is EventName.GRANTED,
        "operation_id": event.operation_id,
        "decision": event.decision,
        # the kind alone tells neither which size nor which cancel
        "detail": event.detail,
        "operator": event.operator,
        "caller": event.caller,
        "text": event.text,
    }


async def _core(core: Core, now: Moment) -> dict[str, Any]:
    silent = await silence_of(core)
    running = []
    for worker in await core.store.workers():
        if worker.is_alive(now) and not core.is_gone(worker.owner, worker.host):
            view = {"kind": worker.kind, "pid": worker.pid, "host": worker.host, "started_at": iso(worker.started_at)}
            running.append(view | {"heartbeat_age_ms": max(0, now.boot - worker.beat_boot)})
    return {"runs": is_running(silent) and bool(running), "silent_ms": silent, "running": running}


async def _audit(core: Core) -> dict[str, Any]:
    """Head and anchor; what cannot be read is said."""
    try:
        await core.audit.load(core.store)
        await core.audit.anchor(core.store, core.clock.now())  # compared with the chain: a cut is no mere count
        state = await chain_state(core)
    except PollconsoleError as error:
        return {
            "begun": False,
            "links": 0,
            "head": "",
            "anchored": False,
            "alarm": None,
            "why": str(error),
            "key": None,
        }
    return {
        "begun": state.begun,
        "links": state.links,
        "head": state.head,
        "anchored": state.anchored,
        "alarm": state.alarm,
        "why": state.why,
        "key": state.key,
    }
