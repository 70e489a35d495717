"""What a case of the demo is: one job, how it is handed over, and what is to come of it.

Job: the shape, and the few words that all cases share. Must not know: which cases there are.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollconsole.demo.dialects import Dialect
from pollconsole.demo.lives import Life, Reply
from pollcore.facts import Status, StopDetail, StopReason

CALLER: Final = "nightly-pipeline"
AGENT: Final = "agent-7"
"""Hands over some of the waits, and asks for an extension."""
OLD_TOKEN: Final = "batch-old"
"""Credential whose token the provider rotates away."""
LOST: Final = "render-lost"
"""Credential that operations name and the keyring does not hold."""
ROTATED_AT_S: Final = 45.0
"""Demo time at which the old token ends."""
ASKS_AT_S: Final = 40.0
"""Demo time at which the agent asks for more."""


class Expect(msgspec.Struct, frozen=True):
    """What the operation comes to, without a human. *reason* None: it ends well, or still waits."""

    status: Status
    reason: StopReason | None = None
    detail: StopDetail | None = None


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One wait. Spans in seconds of demo time; limits that are None are the contract's."""

    operation_id: str
    dialect: Dialect
    job_id: str
    label: str
    about: str
    """What misbehaves, in one line; empty for ordinary jobs."""
    life: Life
    expect: Expect | None = None
    caller: str = CALLER
    account: str | None = None
    """One's own account keeps a cool-down or an outage to this case."""
    credential: str | None = None
    started_ago_s: float = 0.0
    deadline_s: float | None = None
    """From now, not from the start."""
    useful_s: float | None = None
    max_status_requests: int | None = None
    max_transport_failures: int | None = None
    max_rate_limited: int | None = None
    params: dict[str, str] = {}
    keeps_going: bool = False
    asks_extension: bool = False


SUCCEEDED: Final = Expect(Status.SUCCEEDED)
WAITING: Final = Expect(Status.WAITING)
ASKING: Final = Expect(Status.AWAITING_APPROVAL)
"""Nothing is sent before somebody gave leave."""


def stopped(reason: StopReason, detail: StopDetail | None = None) -> Expect:
    """A stop where the job's fate is not known."""
    return Expect(Status.ESCALATED, reason, detail)


def broken(detail: StopDetail) -> Expect:
    """An answer that could not be trusted."""
    return stopped(StopReason.INTEGRATION_FAILURE, detail)


def done(dialect: Dialect) -> Reply:
    """The end that everybody hopes for."""
    return Reply(state=dialect.done, fields={"result": True})


def error(code: str, message: str) -> dict[str, dict[str, str]]:
    """A provider's error, as `Reply.fields`."""
    return {"error": {"code": code, "message": message}}
