"""`submit --file`: the same as the flags, as one JSON object with their names in snake_case.

Job: bytes -> checked fields, with errors that name the field; flags and fields into one set. Must not know: contracts,
limits of providers, the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final

import msgspec

from pollconsole.cli import values
from pollcore.facts import Refused

MAX_FILE_BYTES: Final = 256 << 10

Scalar = str | int | float | bool | None


class Handover(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Every field of a submission; None: not given. Times and spans are still texts here."""

    provider: str | None = None
    job_id: str | None = None
    param: dict[str, Any] | None = None
    status_url: str | None = None
    deadline: str | None = None
    max_requests: int | None = None
    max_transport_failures: int | None = None
    max_rate_limited: int | None = None
    useful_until: str | None = None
    id: str | None = None
    label: str | None = None
    request_fingerprint: str | None = None
    idempotency_key: str | None = None
    credential: str | None = None
    account: str | None = None
    started_at: str | None = None
    caller: str | None = None
    expected_state: list[str] | None = None
    response_url: str | None = None


FIELDS: Final = tuple(field.name for field in msgspec.structs.fields(Handover))
_URLS = frozenset({"status_url", "response_url"})
_TIMES: Mapping[str, Callable[[str], Any]] = {
    "deadline": values.check_when,
    "useful_until": values.check_instant,
    "started_at": values.check_instant,
}


def parse_handover(data: bytes, name: str) -> Handover:
    """Read one JSON object.

    Raises:
        Refused: code `file`; the message names the field, or where the JSON ends to be JSON.
    """

    def refuse(what: str) -> Refused:
        return Refused(f"--file {name}: {what}", code="file")

    try:
        found = json.loads(
            data.decode("utf-8-sig"), object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite
        )
    except UnicodeDecodeError as error:
        raise refuse(f"not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise refuse(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise refuse("nested too deeply") from None
    except ValueError as error:
        why = str(error) if isinstance(error, _Wrong) else "a number beyond all measure"
        raise refuse(why) from None
    if not isinstance(found, dict):
        raise refuse('must be one JSON object, like {"provider": "acme", "job_id": "job-7"}')
    for key in found:
        if key not in FIELDS:
            near = get_close_matches(key, FIELDS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(FIELDS)}"
            raise refuse(f"unknown field {key!r}; {hint}")
    try:
        handed = msgspec.convert(found, Handover, strict=True)
    except (msgspec.ValidationError, OverflowError) as error:
        raise refuse(_field_error(str(error))) from None
    try:
        check(handed)
    except ValueError as error:
        raise refuse(str(error)) from None
    return handed


def check(handed: Handover) -> None:
    """Check texts, times and counts of *handed*. Raises ValueError that starts with the field's name."""
    for name in FIELDS:
        value = getattr(handed, name)
        if value is None:
            continue
        try:
            _check_field(name, value)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def _check_field(name: str, value: Any) -> None:
    if isinstance(value, str):
        values.check_text(value, values.MAX_URL if name in _URLS else values.MAX_TEXT)
        if name in _TIMES:
            _TIMES[name](value)
    elif isinstance(value, int):
        values.check_count(str(value) if abs(value) < 10**values.MAX_DIGITS else "9" * (values.MAX_DIGITS + 1))
    elif isinstance(value, list):
        if len(value) > values.MAX_PARAMS:
            raise ValueError(f"more than {values.MAX_PARAMS} states")
        for item in value:
            values.check_text(item)
    elif isinstance(value, dict):
        _check_params(value)


def _check_params(params: dict[str, Any]) -> None:
    if len(params) > values.MAX_PARAMS:
        raise ValueError(f"more than {values.MAX_PARAMS} parameters")
    for key, value in params.items():
        values.check_text(key, 200)
        if isinstance(value, str):
            if value:
                values.check_text(value, values.MAX_URL)
        elif isinstance(value, dict | list):
            raise ValueError(f"{key!r} must be a text, a number, true, false or null")
        elif isinstance(value, int) and abs(value) >= 2**63:
            raise ValueError(f"{key!r} is a number beyond all measure")


def merge(handed: Handover, flags: Handover, name: str) -> Handover:
    """Both together. Raises Refused for what is given in both."""
    merged = {}
    for field in FIELDS:
        here, there = getattr(flags, field), getattr(handed, field)
        if here is not None and there is not None:
            flag = "--" + field.replace("_", "-")
            raise Refused(f"{flag} is also in --file {name} as {field!r}; keep one of them", code="file")
        merged[field] = here if here is not None else there
    return Handover(**merged)


class _Wrong(ValueError):
    """An error of ours inside json's parser: its text may be shown."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Wrong(f"{twice!r} is there twice")
    return made


def _no_constant(text: str) -> float:
    raise _Wrong(f"{text} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _Wrong("a number beyond all measure")
    return number


def _field_error(text: str) -> str:
    """msgspec's `Expected `int`, got `str` - at `$.max_requests`` as `max_requests: expected int, got str`."""
    what, _, where = text.replace("`", "").partition(" - at $.")
    return f"{where}: {what[:1].lower()}{what[1:]}" if where else what
