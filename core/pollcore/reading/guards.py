"""When an end counts: result fields, contradictions, identity, the provider's expiry.

Job: spec S4, S5, S6, S10, E5's facts; errors of failed jobs. Must not know: how the state was found, budgets.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from pollcore.contract.origins import absolute, host_of, is_loopback, normalise_origin
from pollcore.contract.parts import Expiry, Required
from pollcore.facts import Instant, Refused, ResultPointer, StopDetail, Verdict, clock_time, iso, parse_instant
from pollcore.reading import times
from pollcore.reading.draft import Draft
from pollcore.reading.look import Look, shown
from pollcore.reading.strict_json import MAX_DIGITS

MAX_FIELD: Final = 4_096
"""Bytes of a field as JSON that is kept beside a result, if it is there."""
MAX_REQUIRED: Final = 65_536
"""Of a field that the contract requires: where nothing else brings the result, it may be the result itself."""
"""Bytes of JSON that a result field may have to be kept in the pointer."""

_UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
_INTEGER_TEXT: Final = re.compile(rf"-?[0-9]{{1,{MAX_DIGITS}}}")
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def check_success(look: Look, draft: Draft) -> None:
    """S4. Raises RuleFailed."""
    success = look.contract.success
    fields: dict[str, Any] = dict(look.root.get("redirect", {}))
    missing: str | None = None
    for field in success.requires:
        value = look.value(field.path, f"success.requires {field.name}")
        wrong = _wrong(look, field, value)
        if value is not None:
            resolve = field.format == "url" and wrong is None
            kept = _keep(look, fields, field.name, value, MAX_REQUIRED, resolve=resolve)
            if not kept and wrong is None and look.contract.result is None:
                # S9: some providers tell it once, and nothing would fetch it later
                wrong = f"is larger than {MAX_REQUIRED:,} bytes and cannot be kept"
        if wrong is not None and missing is None:
            missing = f"{field.path.source} {wrong}"
    for name, path in success.fields:
        value = look.value(path, f"success.fields {name}")
        if value is not None:
            _keep(look, fields, name, value, MAX_FIELD)
    for one in success.qualifiers:
        if one.name not in draft.qualifiers and look.holds(one.when, f"success.qualifiers {one.name}"):
            draft.qualifiers += (one.name,)
    against = next((part.source for part in success.forbids if look.holds(part, "success.forbids")), None)
    valid = missing is None and against is None
    if valid or fields:
        draft.result = ResultPointer(fields, success.permits, valid, draft.qualifiers)
    if against is not None:
        draft.broke(StopDetail.SUCCESS_CONTRADICTED, f"{against} is there beside the success")
    elif missing is not None:
        draft.broke(StopDetail.SUCCEEDED_WITHOUT_RESULT, missing)


def _keep(look: Look, fields: dict[str, Any], name: str, value: Any, limit: int, *, resolve: bool = False) -> bool:
    """Whether it could be kept: not larger than *limit* bytes."""
    if resolve:
        value = absolute(look.url, value)
    try:
        large = len(msgspec.json.encode(value)) > limit
    except (TypeError, ValueError, OverflowError):
        large = True
    if large:
        look.notes.append(f"result field {name} left out: larger than {limit:,} bytes")
    else:
        fields[name] = value
    return not large


def _wrong(look: Look, field: Required, value: Any) -> str | None:
    """What is wrong with a required field, in words; None: nothing."""
    if value is None or value == "":
        return "is missing"
    kind = field.type or ("string" if field.format or field.pattern else None)
    if kind is not None:
        bool_where_number = isinstance(value, bool) and kind != "boolean"
        if bool_where_number or not isinstance(value, _TYPES[kind]):
            return f"is not of type {kind}"
    if field.pattern is not None and not look.matches(field.pattern, value, f"success.requires {field.name}"):
        return "does not match its pattern"
    if field.format == "url":
        return _wrong_url(look, value, field.hosts)
    if field.format == "uuid" and not _UUID.fullmatch(value):
        return "is no UUID"
    if field.format == "integer-text" and not _INTEGER_TEXT.fullmatch(value):
        return "is no integer as text"
    if field.format == "date-time":
        try:
            parse_instant(value)
        except (ValueError, OverflowError):
            return "is no date and time with a zone"
    return None


def _wrong_url(look: Look, value: str, hosts: tuple[str, ...]) -> str | None:
    try:
        origin = normalise_origin(absolute(look.url, value))
    except Refused:
        return "is no URL"
    if origin.startswith("http://") and not (is_loopback(origin) or look.contract.allow_http):
        return "is http, not https"
    if hosts and not host_allowed(host_of(origin), hosts):
        return f"is on {host_of(origin)}, which the contract does not allow for results"
    return None


def host_allowed(host: str, hosts: tuple[str, ...]) -> bool:
    """Exact, or below a `*.` entry."""
    return any(host.endswith(one[1:]) and len(host) > len(one) - 1 if one[0] == "*" else host == one for one in hosts)


def check_identity(look: Look, draft: Draft) -> None:
    """S6, S10: another job's answer is no answer. Raises RuleFailed."""
    identity, submitted = look.contract.identity, look.seen.submitted
    if look.step.each is not None or (identity.steps and look.step.name not in identity.steps):
        return
    for path, ours, what in (
        (identity.job_id, submitted.job_id, "job"),
        (identity.account, submitted.account, "account"),
    ):
        if path is None:
            continue
        theirs = look.value(path, f"identity.{what}")
        if theirs is None:
            continue
        if isinstance(theirs, bool) or not isinstance(theirs, str | int) or str(theirs) != ours:
            draft.broke(StopDetail.WRONG_JOB, f"the answer is about {what} {shown(theirs)}, asked was {ours}")
            draft.job_seen = False
            return
    attempt = attempt_of(look)
    memory = look.seen.memory
    if memory.settling is not None and None not in (attempt, memory.attempt) and attempt != memory.attempt:
        draft.broke(StopDetail.WRONG_JOB, f"attempt {attempt} after the end of attempt {memory.attempt}")


def attempt_of(look: Look) -> str | None:
    """The attempt counter as compact JSON. Raises RuleFailed."""
    path = look.contract.identity.attempt
    value = look.value(path, "identity.attempt") if path is not None else None
    return None if value is None else shown(value)


def read_expiry(look: Look, draft: Draft) -> None:
    """S5, R30: the earliest expiry of the job that this answer names; unusable ones become notes."""
    for expiry in look.contract.expiries:
        try:
            at = _expires(look, expiry)
        except ValueError as error:
            look.notes.append(f"expiry_invalid: {expiry.path.source}: {error}")
            continue
        if at is None:
            continue
        if expiry.of == "result":
            look.notes.append(f"result kept until {iso(at)}")
        elif draft.provider_expires_at is None or at < draft.provider_expires_at:
            draft.provider_expires_at = at
    known = draft.provider_expires_at or look.seen.provider_expires_at
    if draft.verdict is Verdict.WAITING and known is not None and look.answer.answered_at > known:
        text = f"still waiting at {clock_time(look.answer.answered_at)}, the provider said it expires {iso(known)}"
        draft.broke(StopDetail.WAITING_PAST_PROVIDER_EXPIRY, text)


def _expires(look: Look, expiry: Expiry) -> Instant | None:
    """Raises RuleFailed, ValueError."""
    value = look.value(expiry.path, "expiry")
    if value is None:
        return None
    if expiry.unit not in times.SPANS:
        return times.instant(value, expiry.unit, look.answer.answered_at)
    start: Instant = look.seen.started_at
    if expiry.anchor is not None:
        anchor = look.value(expiry.anchor, "expiry.anchor")
        if anchor is None:
            return None
        start = parse_instant(anchor) if isinstance(anchor, str) else _no_anchor()
    return Instant(start + times.span(value, expiry.unit))


def _no_anchor() -> Instant:
    raise ValueError("its anchor is no date and time")


def read_error(look: Look, draft: Draft) -> None:
    """R33: the provider's own error, kept for people; its absence on a failed job is recorded, no failure of ours."""
    error = look.contract.error
    if error.message is None and error.code is None:
        return
    code, message = look.text(error.code, "error.code"), look.text(error.message, "error.message")
    told = ": ".join(part for part in (code, message) if part is not None)
    retryable = look.text(error.retryable, "error.retryable")
    if retryable is not None:
        told += f" (provider says retryable: {retryable})"
    draft.provider_error = told or None
    if draft.verdict is Verdict.FAILED and code is None and message is None:
        draft.error_details_missing = True
        look.notes.append("error_details_missing")
