"""A saved answer as the transport would have taken it, and as the answer to a cancel.

Job: (contract, answer) -> the answer or the fault that a live request would have brought; what a cancel came to. Must
not know: output, files; it sends nothing.
Source: spec H7, O5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from pollcore.facts import Answer, Fault, FaultKind, Instant

if TYPE_CHECKING:
    from pollcore.contract import Contract


def complete_at(answer: Answer, at: Instant) -> Answer:
    """*answer* as one that was complete at *at*, and sent when its own `Date` says, if that is earlier: how long it lay
    in a file is no difference of clocks (T3)."""
    from pollcore.reading.times import http_date

    try:
        sent_at = min(at, http_date(answer.header("date") or "", at))
    except ValueError:
        sent_at = at
    return msgspec.structs.replace(answer, sent_at=sent_at, answered_at=at)


def received(method: str, answer: Answer, at: Instant) -> Answer | Fault:
    """*answer*, unless its head or its size is none that a live request takes.

    A body that names a content encoding was unpacked when it was saved: how long it was on the wire nobody knows, so
    only the limit on unpacked bodies holds.
    """
    from pollcore.adapters.body import MAX_DECODED, BodyFault, read_head

    unpacked = any(name == "content-encoding" and value.lower() != "identity" for name, value in answer.headers)
    raw = [
        (name.encode("latin-1", "replace"), value.encode("latin-1", "replace"))
        for name, value in answer.headers
        if name != "content-encoding"
    ]
    try:
        _, body = read_head(method, answer.status, raw)
        if not unpacked:
            body.feed(answer.body)
        elif len(answer.body) > MAX_DECODED:
            raise BodyFault(FaultKind.TOO_LARGE, f"the body is larger than {MAX_DECODED} bytes after decompression")
    except BodyFault as fault:
        return Fault(fault.kind, True, at, fault.text)
    return answer


def fault_view(fault: Fault | None) -> dict[str, Any] | None:
    """*kind*, *text*; None: there is an answer."""
    return None if fault is None else {"kind": fault.kind.value, "text": fault.text}


def cancel_view(contract: Contract, answer: Answer, at: Instant, step: str | None = None) -> dict[str, Any]:
    """What *answer* to the documented cancel (*step* `force`: the force-cancel) would be taken for: *outcome* `done`,
    `refused`, `unknown`, and *detail*.

    Raises Refused: the contract documents none.
    """
    from pollcore import reading
    from pollcore.contract.requests import cancel_plan

    plan = cancel_plan(contract, step)
    outcome, detail = reading.read_cancel(contract, received(plan.request.method, answer, at), step)
    return {"outcome": outcome.value, "detail": detail}
