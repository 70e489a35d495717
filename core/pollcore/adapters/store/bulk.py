"""Reading many at once: what is asked of people, with the records, answers, actions and questions behind it.

Job: one statement for a whole list where `reads` has one for each. Must not know: writing, what the list is for.
Source: spec E10 (thousands of questions are one card, and one read).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pollcore.adapters.store import event_rows, rows
from pollcore.adapters.store.reads import ACTION, ANSWER, ANSWERED, MAX_ROWS, QUESTION, Reads, action_record
from pollcore.adapters.store.reads import question_record as record
from pollcore.facts import ActionRecord, AuditEvent, Escalation, EventName, Operation, SealedUnreadable, StopReason
from pollcore.ports import Stored

_WIDTH: Final = len(rows.COLUMNS)
_ASKED: Final = (
    f"SELECT {', '.join(f'o.{c}' for c in rows.COLUMNS)}, {', '.join(f'e.{c}' for c in QUESTION)} "
    "FROM escalation e JOIN operation o ON o.op=e.operation WHERE e.decided_at IS NULL"
)
_NEWEST: Final = (
    "(SELECT n.n FROM intent n JOIN observation s ON s.intent=n.id "
    "WHERE n.operation=j.value AND s.http_code IS NOT NULL ORDER BY n.n DESC LIMIT 1)"
)


def asked(
    reads: Reads, cause: str | None, limit: int, reasons: Sequence[StopReason] = ()
) -> tuple[tuple[Operation, Escalation], ...]:
    """Open questions with their operations, the oldest first; *cause*, *reasons*: of these alone."""
    where, values = ("", []) if cause is None else (" AND e.cause=?", [cause])
    if reasons:
        where += f" AND e.reason IN ({','.join('?' * len(reasons))})"
        values += [reason.value for reason in reasons]
    limit = max(0, min(limit, MAX_ROWS))
    found = reads.conn.execute(f"{_ASKED}{where} ORDER BY e.asked_at, e.rowid LIMIT {limit}", values).fetchall()
    reads.known.load_submitted(row[0] for row in found)
    operations = reads.records([row[:_WIDTH] for row in found])
    return tuple((op, record((row[1], *row[_WIDTH:]))) for op, row in zip(operations, found, strict=True))


def questions_by_id(reads: Reads, escalation_ids: Iterable[str]) -> Mapping[str, Escalation]:
    """Questions, open or decided, by their own id; unknown ids are absent."""
    found = reads.conn.execute(
        f"SELECT o.id, {', '.join('e.' + c for c in QUESTION)} FROM json_each(?) j "
        "CROSS JOIN escalation e ON e.escalation_id=j.value JOIN operation o ON o.op=e.operation",
        (_json(escalation_ids),),
    ).fetchall()
    return {question.escalation_id: question for question in map(record, found)}


def last_answers(reads: Reads, operation_ids: Sequence[str]) -> Mapping[str, Stored]:
    """The newest stored answer of each, envelope opened; absent: there is none, or it cannot be opened now."""
    names = _numbers(reads, operation_ids)
    found = reads.conn.execute(
        f"SELECT j.value, {ANSWER} FROM json_each(?) j CROSS JOIN intent i ON i.operation=j.value AND i.n={_NEWEST} "
        f"{ANSWERED}",
        (_json(names),),
    ).fetchall()
    answers = {}
    for row in found:
        try:
            answers[names[row[0]]] = reads.stored(names[row[0]], row[1:])
        except SealedUnreadable:
            continue
    return answers


def actions_of(reads: Reads, operation_ids: Sequence[str]) -> Mapping[str, tuple[ActionRecord, ...]]:
    """Cancels, fetches and resubmits of each, oldest first; absent: none."""
    names = _numbers(reads, operation_ids)
    found = reads.conn.execute(
        f"SELECT a.operation, {', '.join('a.' + c.strip() for c in ACTION.split(','))} FROM json_each(?) j "
        "CROSS JOIN action a ON a.operation=j.value ORDER BY a.rowid",
        (_json(names),),
    ).fetchall()
    kept: dict[str, tuple[ActionRecord, ...]] = {}
    for op, *row in found:
        kept[names[op]] = (*kept.get(names[op], ()), action_record(names[op], tuple(row)))
    return kept


def unsettled_actions(reads: Reads, limit: int) -> tuple[ActionRecord, ...]:
    """Actions whose outcome nobody recorded yet, oldest first."""
    found = reads.conn.execute(
        f"SELECT o.id, {', '.join('a.' + c.strip() for c in ACTION.split(','))} FROM action a "
        "JOIN operation o ON o.op=a.operation WHERE a.outcome='intended' ORDER BY a.rowid LIMIT ?",
        (max(0, min(limit, MAX_ROWS)),),
    ).fetchall()
    return tuple(action_record(row[0], tuple(row[1:])) for row in found)


def events_named(reads: Reads, name: EventName, limit: int) -> tuple[tuple[int, AuditEvent], ...]:
    """The newest events of one name, in the order written."""
    columns = ", ".join(f"e.{column}" for column in event_rows.EVENT_COLUMNS)
    found = reads.conn.execute(
        f"SELECT e.seq, o.id, {columns} FROM event e LEFT JOIN operation o ON o.op=e.operation WHERE e.event=? "
        "ORDER BY e.seq DESC LIMIT ?",
        (name.value, max(0, min(limit, MAX_ROWS))),
    ).fetchall()
    return tuple((row[0], event_rows.event_record(row[1], row[2:])) for row in reversed(found))


def _numbers(reads: Reads, operation_ids: Iterable[str]) -> dict[int, str]:
    """Row number -> id, of those that exist."""
    pairs = ((reads.known.op(each), each) for each in operation_ids)
    return {op: each for op, each in pairs if op is not None}


def _json(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values)).decode()
