"""Operations, answers and moments for the tests of reading."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from pollcore.contract import Contract, parse
from pollcore.facts import (
    Answer,
    BootMs,
    Exchange,
    Instant,
    Memory,
    Moment,
    Observation,
    Operation,
    Status,
    Submitted,
    parse_instant,
)
from pollcore.reading import read

START = parse_instant("2026-03-02T10:00:00Z")
URL = "https://api.example.test/v1/jobs/job-1"

HEAD = """\
schema = 1
name = "acme"
origins = ["https://api.example.test"]
[credential]
kind = "bearer"
[status]
url = "https://api.example.test/v1/jobs/{job_id}"
observation = "read_only"
evidence = "test"
"""
STATE = '[state]\nvalue = "body.status"\n'
STATES = """\
[states]
waiting = ["queued", "running"]
cancelling = ["cancelling"]
succeeded = ["succeeded"]
failed = ["failed"]
cancelled = ["cancelled"]
expired = ["expired"]
needs_human = ["paused"]
"""
LIMITS = '[limits]\ndeadline_basis = "test"\n'


def contract(more: str = "", *, head: str = HEAD, state: str = STATE + STATES) -> Contract:
    """A small contract; *more* are further tables."""
    return parse(head + state + LIMITS + more, "acme.toml")


def operation(memory: Memory | None = None, *, job_id: str = "job-1", **submitted: Any) -> Operation:
    given = Submitted(provider="acme", account="a", job_id=job_id)
    return Operation(
        operation_id="op-1",
        submitted=msgspec.structs.replace(given, **submitted),
        status=Status.WAITING,
        contract_digest="d",
        started_at=START,
        submitted_at=START,
        boot_id="boot",
        deadline_at=Instant(START + 3_600_000),
        deadline_boot=BootMs(3_600_000),
        max_status_requests=20,
        max_transport_failures=3,
        max_rate_limited=3,
        memory=memory or Memory(),
    )


def answer(
    status: int = 200,
    body: Any = None,
    headers: dict[str, str] | list[tuple[str, str]] | None = None,
    *,
    after: int = 5_000,
) -> Answer:
    """*body*: bytes as they are, None for none, anything else as JSON. *after*: ms since the start."""
    pairs = list(headers.items()) if isinstance(headers, dict) else headers or []
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    at = Instant(START + after)
    return Answer(status, tuple((name.lower(), value) for name, value in pairs), raw, Instant(at - 50), at)


def moment(after: int = 5_000) -> Moment:
    return Moment(Instant(START + after), BootMs(after), "boot")


def look(
    one: Contract, got: Answer, memory: Memory | None = None, *, step: str = "status", url: str = URL, **submitted: Any
) -> tuple[Observation, Memory]:
    """Read one answer."""
    return read(one, operation(memory, **submitted), (Exchange(step, url, got),))
