"""Audit event <-> its clear operational row.

Job: columns of `event`, order and encoding. Must not know: the chain, sealing, who writes or reads.
Source: spec A1.
"""

from __future__ import annotations

import functools
from typing import Any, Final

import msgspec

from pollcore.adapters.store.encoding import dump, text
from pollcore.facts import AuditEvent, DelaySource, EventName

_SOURCE: Final[dict[str | None, DelaySource | None]] = {None: None, **{s.value: s for s in DelaySource}}
_EVENT_FIELDS: Final = tuple(f for f in AuditEvent.__struct_fields__ if f not in ("at", "event", "operation_id"))
EVENT_COLUMNS: Final = ("at", "event", *_EVENT_FIELDS)
_HEAD: Final = ("seq", "operation", "prev", "at", "event")
_astuple: Final = msgspec.structs.astuple


@functools.cache
def insert(filled: tuple[int, ...]) -> str:
    """The statement for rows with these fields (numbers of _EVENT_FIELDS): most of an event is empty, and binding NULL
    costs more than binding a number. As many statements as there are shapes of events."""
    columns = [*_HEAD, *(_EVENT_FIELDS[i] for i in filled)]
    return f"INSERT INTO event({','.join(columns)}) VALUES({','.join('?' * len(columns))})"


def event_row(
    seq: int, op: int | None, prev: int | None, event: AuditEvent
) -> tuple[tuple[int, ...], list[Any], AuditEvent]:
    """Which fields are filled, the row of *event* for `insert`, and the event as stored.

    A provider's text that UTF-8 cannot hold is spelled out, here and in the event that goes on to the audit.
    """
    row: list[Any] = [seq, op, prev, event.at, event.event.value]
    filled = []
    spelled: dict[str, Any] = {}
    for i, value in enumerate(_astuple(event)[3:]):
        if value is None:
            continue
        kind = type(value)
        if kind is int:
            plain: Any = value
        elif kind is tuple:
            if not value:
                continue
            plain = tuple(text(v) for v in value)
            if plain != value:
                spelled[_EVENT_FIELDS[i]] = plain
            plain = dump(plain)
        else:
            plain = text(value)
            if plain != value:
                spelled[_EVENT_FIELDS[i]] = plain
        filled.append(i)
        row.append(plain)
    return tuple(filled), row, msgspec.structs.replace(event, **spelled) if spelled else event


def event_record(operation_id: str | None, row: tuple[Any, ...]) -> AuditEvent:
    """The event of a row in the order of EVENT_COLUMNS."""
    fields = dict(zip(EVENT_COLUMNS, row, strict=True))
    fields["event"] = EventName(fields["event"])
    fields["delay_source"] = _SOURCE[fields["delay_source"]]
    fields["notes"] = tuple(msgspec.json.decode(fields["notes"])) if fields["notes"] else ()
    return AuditEvent(operation_id=operation_id, **fields)
