"""What is kept of an answer so that a mended contract can be tried on it.

Job: Answer -> at most 2 KiB of JSON (status, times, the headers that count, the body or the part that rules read), and
back; of a larger one also the body itself, where it is small enough to be kept beside the envelope.
Must not know: sealing, storage. Source: design.md "Records"; spec adopt_contract.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from pollcore.contract.expressions import Expression, Keys
from pollcore.contract.model import Contract
from pollcore.contract.requests import EACH
from pollcore.facts import Answer, Instant
from pollcore.reading.look import Look

MAX_ENVELOPE: Final = 2_048
MAX_WHOLE: Final = 1_500
MAX_BODY: Final = 16_384
"""Bytes of a body that are kept beside an envelope which could not hold it."""
MAX_TEXT: Final = 400
KEPT_LINES: Final = 3
"""Documents that are kept of an NDJSON answer which is too large to be kept whole."""
KEPT: Final = frozenset({"date", "retry-after", "location", "content-type", "operation-location"})
"""Headers that reading itself looks at; those that a contract's expressions name are kept beside them."""


def pack(look: Look) -> bytes:
    """At most MAX_ENVELOPE bytes. *whole* says whether nothing was left out."""
    answer = look.answer
    headers = {
        name: value for name, value in look.headers.items() if name in KEPT or name in look.contract.kept_headers
    }
    head: dict[str, Any] = {
        "status": answer.status,
        "sent_at": answer.sent_at,
        "answered_at": answer.answered_at,
        "url_step": look.step.name,
        "headers": headers,
    }
    if missing := sorted(look.contract.kept_headers - KEPT - headers.keys()):
        head["absent"] = missing
    if look.others:
        head["others"] = look.others
    if look.step.each is not None:
        head["each"] = look.seen.memory.values.get(EACH)
    json = look.step.request.format.name == "json"
    if look.body_fault is None and look.body is not None and not json and len(answer.body) <= MAX_WHOLE:
        packed = _encode({**head, "whole": True, "text": answer.body.decode("utf-8")})
        if len(packed) <= MAX_ENVELOPE:
            return packed
    if look.body_fault is None and look.body is not None and json and len(answer.body) <= MAX_WHOLE:
        packed = msgspec.json.encode({**head, "whole": True, "body": msgspec.Raw(answer.body)})
        if len(packed) <= MAX_ENVELOPE:
            return packed
    if look.body_fault is None:
        whole = look.body is None and not answer.body
        body = look.body
        if look.step.request.format.name == "ndjson" and isinstance(body, list):
            # of a stream the newest documents tell the state
            body = body[-KEPT_LINES:]
        kept = _own_item(look, _pruned(body, look.contract.prefixes))
        packed = _encode({**head, "whole": whole, "tree": True, "body": kept})
    else:
        text = answer.body[:MAX_TEXT].decode("utf-8", "replace")
        packed = _encode({**head, "whole": len(answer.body) <= MAX_TEXT, "text": text})
    if len(packed) <= MAX_ENVELOPE:
        return packed
    short = {name: value[:64] for name, value in headers.items() if name in ("date", "retry-after")}
    return _encode({**head, "headers": short, "whole": False, "cut": True})


def body_beside(envelope: bytes, body: bytes) -> bytes | None:
    """The body, cut to MAX_BODY, where *envelope* does not hold it whole; None: it does."""
    # a whole envelope is longer than the body in it
    return body[:MAX_BODY] if len(body) > MAX_WHOLE or len(body) > len(envelope) else None


def _encode(value: dict[str, Any]) -> bytes:
    try:
        return msgspec.json.encode(value)
    except (TypeError, ValueError, OverflowError):
        return msgspec.json.encode({"status": value["status"], "whole": False, "cut": True})


def _pruned(body: Any, prefixes: tuple[Keys, ...]) -> Any:
    """The part of *body* that the contract's expressions can reach."""
    if not isinstance(body, dict):
        return body
    kept: dict[str, Any] = {}
    for prefix in prefixes:
        source, target = body, kept
        keys = prefix[1:]
        if not keys:
            return body
        for n, key in enumerate(keys):
            if not isinstance(key, str) or key not in source:
                break
            last = n == len(keys) - 1 or not isinstance(source[key], dict)
            if last:
                target[key] = source[key]
                break
            source, target = source[key], target.setdefault(key, {})
            if target is source:
                break
    return kept


def _own_item(look: Look, kept: Any) -> Any:
    """R39: of a list of several jobs, this job's entry alone."""
    plan, item = look.step.item, look.root.get("item")
    if plan is None or item is None:
        return kept
    value: Any = [item] if plan.job_id is not None else {look.seen.submitted.job_id: item}
    if plan.entries.keys is None:
        # no plain path: the entry alone, where the expression finds it there as well
        return item if _entries_of(plan.entries, item, look) == value else kept
    path = plan.entries.keys[1:]
    if not path:
        return value
    for key in reversed(path[1:]):
        value = {key: value}
    return {**kept, path[0]: value} if isinstance(kept, dict) else kept


def _entries_of(entries: Expression, body: Any, look: Look) -> Any:
    try:
        return entries.read({**look.root, "body": body}, look.steps)
    except Exception:  # told where the answer itself is read
        return None


class Unpacked(msgspec.Struct, frozen=True):
    """A stored answer. *cut*: too large to be kept; it cannot be read again. *tree*: its body is the read tree as JSON,
    whatever the answer's format was. *each*: the child that was asked (R21). *others*: operations that the same request
    asked for (R39). *absent*: headers that the contract of then looked for and that were not there."""

    answer: Answer
    step: str
    whole: bool
    cut: bool
    tree: bool = False
    each: str | None = None
    others: int = 0
    absent: tuple[str, ...] = ()

    def answers(self, contract: Contract) -> bool:
        """Whether *contract* finds here all that it would have found in the answer itself."""
        known = KEPT.union(self.absent, (name for name, _ in self.answer.headers))
        return self.whole and not self.cut and contract.kept_headers <= known


def unpack(envelope: bytes, body_beside: bytes | None = None) -> Unpacked | None:
    """The answer as kept; None: the bytes are no envelope of ours.

    Args:
        body_beside: What `body_beside` made of the answer's body: read instead of the part that the envelope holds.
    """
    try:
        found = msgspec.json.decode(envelope)
        body = b"" if found.get("body") is None else msgspec.json.encode(found["body"])
        if "text" in found:
            body = found["text"].encode("utf-8", "replace")
        answer = Answer(
            int(found["status"]),
            tuple((str(name), str(value)) for name, value in found.get("headers", {}).items()),
            body,
            Instant(int(found.get("sent_at", 0))),
            Instant(int(found.get("answered_at", 0))),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    each, others, absent = found.get("each"), found.get("others"), found.get("absent")
    kept = Unpacked(
        answer,
        str(found.get("url_step", "status")),
        bool(found.get("whole")),
        bool(found.get("cut")),
        bool(found.get("tree")),
        each if isinstance(each, str) else None,
        others if isinstance(others, int) else 0,
        tuple(str(name) for name in absent) if isinstance(absent, list) else (),
    )
    # of MAX_BODY bytes nobody knows whether more came
    if kept.whole or kept.cut or body_beside is None or len(body_beside) >= MAX_BODY:
        return kept
    return msgspec.structs.replace(
        kept, answer=msgspec.structs.replace(answer, body=body_beside), whole=True, tree=False
    )
