"""Record <-> row: operations and events as they lie in the tables.

Job: order of columns, encoding, sealing, what of it stays clear. Must not know: transactions, fences, who asks.

Clear: counts, times, codes, parsed states. Sealed: a status URL with a query, the idempotency key, the part of the
memory that may hold URLs (`next_url`, `values`), result fields (spec K4, design "Records"). Where the sealed part
cannot be opened, the record comes with UNREADABLE in its place; writing such a record back leaves the column alone.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from pollcore.adapters.store.encoding import canonical, dump, names, text
from pollcore.facts import (
    DelaySource,
    HttpFact,
    Memory,
    Operation,
    ResultPointer,
    SealedUnreadable,
    Status,
    StopDetail,
    StopReason,
    Submitted,
    mask_url,
)
from pollcore.ports import Sealer

UNREADABLE: Final = "sealed:unreadable"
"""Stands where a sealed text cannot be opened now. No URL and no key looks like it."""


COLUMNS: Final = names(
    "op id status version change epoch lease_owner lease_until contract credential started_at submitted_at "
    "boot deadline_at deadline_boot useful_until provider_expires_at max_status_requests status_requests_used "
    "max_transport_failures transport_failures_used max_rate_limited rate_limited_used completed_polls "
    "rate_limited_in_a_row next_poll_at due_boot delay_source guidance_until hold_until holds_used check_once "
    "cancel_granted extensions_used last_known_state http_code http_sent_at http_answered_at http_request_id "
    "last_fault last_fault_at last_fault_sent memory memory_sealed stop_reason stop_detail stop_explanation "
    "result result_sealed"
)
SELECT: Final = f"SELECT {','.join(COLUMNS)} FROM operation"

HOT: Final = names(
    "change lease_owner lease_until provider_expires_at transport_failures_used rate_limited_used "
    "completed_polls rate_limited_in_a_row next_poll_at due_boot delay_source guidance_until hold_until "
    "check_once last_known_state http_code http_sent_at http_answered_at http_request_id last_fault "
    "last_fault_at last_fault_sent memory memory_sealed last_event"
)
"""What one answer changes while the status, the version and with it all limits stay: no column of another index."""
COLD: Final = names(
    "status version contract credential deadline_at deadline_boot boot useful_until max_status_requests "
    "max_transport_failures max_rate_limited holds_used cancel_granted extensions_used stop_reason "
    "stop_detail stop_explanation result result_sealed"
)
"""`status_requests_used`, `epoch` and the identity are in neither: only a claim counts up (B2, I3)."""


def _set(columns: tuple[str, ...]) -> str:
    # a sealed column whose plain text could not be read comes as an integer: it keeps what it holds
    return ",".join(
        f"{c}=CASE WHEN typeof(?{i})='integer' THEN {c} ELSE ?{i} END" if c.endswith("_sealed") else f"{c}=?{i}"
        for i, c in enumerate(columns, 1)
    )


_HOT_N: Final = len(HOT)
_ALL_N: Final = len(HOT) + len(COLD)
UPDATE_HOT: Final = f"UPDATE operation SET {_set(HOT)} WHERE op=?{_HOT_N + 1} AND change=?{_HOT_N + 2}"
UPDATE_ALL: Final = f"UPDATE operation SET {_set(HOT + COLD)} WHERE op=?{_ALL_N + 1} AND change=?{_ALL_N + 2}"
INSERTED: Final = [
    *names("id provider account job_id started_at submitted_at carried status_requests_used epoch"),
    *HOT,
    *COLD,
]

_KEEP: Final = 0
_STATUS: Final = {s.value: s for s in Status}
_SOURCE: Final[dict[str | None, DelaySource | None]] = {None: None, **{s.value: s for s in DelaySource}}
_EMPTY: Final = Memory()
_memory_decoder: Final = msgspec.json.Decoder(Memory)
_submitted_decoder: Final = msgspec.json.Decoder(Submitted)


class _HiddenMemory(msgspec.Struct, omit_defaults=True):
    """The sealed part of a memory."""

    next_url: str | None = None
    values: dict[str, Any] = {}


class _ClearResult(msgspec.Struct):
    """The clear part of a result pointer."""

    permits: str
    validated: bool
    qualifiers: tuple[str, ...]


class Columns:
    """Encodes and decodes with one sealer; keeps nothing."""

    def __init__(self, sealer: Sealer) -> None:
        self.sealer = sealer

    def hot(self, o: Operation, change: int, lease: tuple[int | None, int | None], last_event: int | None) -> list[Any]:
        """Values of HOT. *lease*: owner's number and wall end, or two None."""
        memory, sealed = self._memory(o.memory)
        http = o.last_http
        source = o.delay_source
        fault = o.last_fault
        return [
            change,
            lease[0],
            lease[1],
            o.provider_expires_at,
            o.transport_failures_used,
            o.rate_limited_used,
            o.completed_polls,
            o.rate_limited_in_a_row,
            o.next_poll_at,
            o.due_boot,
            None if source is None else source.value,
            o.guidance_until,
            o.hold_until,
            o.check_once,
            text(o.last_known_state),
            *(
                (None, None, None, None)
                if http is None
                else (http.code, http.sent_at, http.answered_at, text(http.request_id))
            ),
            None if fault is None else str(fault),
            o.last_fault_at,
            o.last_fault_may_have_been_sent,
            memory,
            sealed,
            last_event,
        ]

    def cold(self, o: Operation, contract: int, boot: int) -> list[Any]:
        """Values of COLD."""
        result, sealed = self._result(o.result)
        return [
            o.status.value,
            o.version,
            contract,
            o.credential,
            o.deadline_at,
            o.deadline_boot,
            boot,
            o.useful_until,
            o.max_status_requests,
            o.max_transport_failures,
            o.max_rate_limited,
            o.holds_used,
            o.cancel_granted,
            o.extensions_used,
            o.stop_reason and o.stop_reason.value,
            o.stop_detail and o.stop_detail.value,
            text(o.stop_explanation),
            result,
            sealed,
        ]

    def _memory(self, memory: Memory) -> tuple[str | None, bytes | int | None]:
        if memory == _EMPTY:
            return None, None
        if memory.next_url is None and not memory.values:
            return dump(memory), None
        clear = dump(msgspec.structs.replace(memory, next_url=None, values={}))
        if memory.next_url == UNREADABLE:
            return clear, _KEEP
        hidden = dump(_HiddenMemory(memory.next_url, memory.values)).encode()
        return clear, self.sealer.seal("operation.memory", hidden)

    def _result(self, result: ResultPointer | None) -> tuple[str | None, bytes | int | None]:
        if result is None:
            return None, None
        clear = dump(_ClearResult(result.permits, result.validated, result.qualifiers))
        if UNREADABLE in result.fields:
            return clear, _KEEP
        return clear, self.sealer.seal("operation.result", dump(result.fields).encode())

    def operation(
        self, row: tuple[Any, ...], submitted: Submitted, owner: str | None, contract: str, boot: str
    ) -> Operation:
        """The record of *row* (COLUMNS), with what its numbers stand for. Never raises for a seal."""
        http = None if row[35] is None else HttpFact(row[35], row[36], row[37], row[38])
        memory = _EMPTY if row[42] is None else _memory_decoder.decode(row[42])
        if row[43] is not None:
            memory = self._open_memory(memory, row[43])
        return Operation(
            operation_id=row[1],
            submitted=submitted,
            status=_STATUS[row[2]],
            version=row[3],
            change=row[4],
            epoch=row[5],
            lease_owner=owner,
            lease_until=row[7],
            contract_digest=contract,
            credential=row[9],
            started_at=row[10],
            submitted_at=row[11],
            boot_id=boot,
            deadline_at=row[13],
            deadline_boot=row[14],
            useful_until=row[15],
            provider_expires_at=row[16],
            max_status_requests=row[17],
            status_requests_used=row[18],
            max_transport_failures=row[19],
            transport_failures_used=row[20],
            max_rate_limited=row[21],
            rate_limited_used=row[22],
            completed_polls=row[23],
            rate_limited_in_a_row=row[24],
            next_poll_at=row[25],
            due_boot=row[26],
            delay_source=_SOURCE[row[27]],
            guidance_until=row[28],
            hold_until=row[29],
            holds_used=row[30],
            check_once=row[31] == 1,
            cancel_granted=row[32] == 1,
            extensions_used=row[33],
            last_known_state=row[34],
            last_http=http,
            last_fault=row[39],
            last_fault_at=row[40],
            last_fault_may_have_been_sent=row[41] == 1,
            memory=memory,
            stop_reason=None if row[44] is None else StopReason(row[44]),
            stop_detail=None if row[45] is None else StopDetail(row[45]),
            stop_explanation=row[46],
            result=None if row[47] is None else self._open_result(row[47], row[48]),
        )

    def _open_memory(self, memory: Memory, sealed: bytes) -> Memory:
        try:
            hidden = msgspec.json.decode(self.sealer.open("operation.memory", sealed), type=_HiddenMemory)
        except SealedUnreadable:
            return msgspec.structs.replace(memory, next_url=UNREADABLE)
        return msgspec.structs.replace(memory, next_url=hidden.next_url, values=hidden.values)

    def _open_result(self, clear: str, sealed: bytes) -> ResultPointer:
        head = msgspec.json.decode(clear, type=_ClearResult)
        try:
            fields = msgspec.json.decode(self.sealer.open("operation.result", sealed))
        except SealedUnreadable:
            fields = {UNREADABLE: True}
        return ResultPointer(fields, head.permits, head.validated, head.qualifiers)

    def submission(self, op: int, submitted: Submitted) -> tuple[Any, ...]:
        """The row of `submission`: its digest, its clear JSON, the sealed status URL and idempotency key."""
        url, key = submitted.status_url, submitted.idempotency_key
        hide = url is not None and mask_url(url) != url
        clear = msgspec.structs.replace(submitted, status_url=mask_url(url) if url else None, idempotency_key=None)
        return (
            op,
            submission_digest(submitted),
            dump(clear),
            self.sealer.seal("operation.status_url", url.encode("utf-8", "backslashreplace")) if url and hide else None,
            None
            if key is None
            else self.sealer.seal("operation.idempotency_key", key.encode("utf-8", "backslashreplace")),
        )

    def submitted(self, clear: str, url: bytes | None, key: bytes | None) -> Submitted:
        """What was handed over, with UNREADABLE for what cannot be opened."""
        found = _submitted_decoder.decode(clear)
        if url is not None:
            found = msgspec.structs.replace(found, status_url=self._open_text("operation.status_url", url))
        if key is not None:
            found = msgspec.structs.replace(found, idempotency_key=self._open_text("operation.idempotency_key", key))
        return found

    def _open_text(self, purpose: str, sealed: bytes) -> str:
        try:
            return self.sealer.open(purpose, sealed).decode()
        except SealedUnreadable:
            return UNREADABLE


def submission_digest(submitted: Submitted) -> bytes:
    """Tells the same submission again (S7) from another one under the same id; who asked and the label do not count."""
    plain = msgspec.structs.replace(submitted, caller=None, os_user="", label=None)
    return hashlib.sha256(canonical(plain)).digest()
