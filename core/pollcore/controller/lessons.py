"""What one answer teaches about the others: an origin that is down, a cool-down, a refused secret.

Job: (answer as read, who asked) -> what all operations share. Must not know: decisions, stores, how it was read. A
request for several operations teaches once, not once for each of them, and something of sharing as well.
Source: spec T8, T11, B4, H3; contract need R39.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Final

import msgspec

from pollcore import decide
from pollcore.contract import batch_requests
from pollcore.controller.prepare import Ready
from pollcore.controller.shared import FAULTS_UNTIL_DOWN, Shared
from pollcore.facts import Answer, BootMs, Fault, FaultKind, Instant, Moment, Observation, Operation, Verdict
from pollcore.ports import UNPROVED, Denial

SHARED_FAULTS_UNTIL_DOWN: Final = 2
"""T11: requests for several operations that failed in a row, and the origin is asked by one, alone: its answer tells
whether the origin is down or their number is what it cannot bear."""
TOO_MANY: Final = frozenset({200, 413, 414})
"""Statuses of an answer about none of its jobs that fewer of them might mend: a body that no list can be read from, a
request that was too long."""


class Went(Enum):
    """What became of a request, as far as it tells of sharing one."""

    ALONE = auto()
    """For one operation, and answered."""
    LISTED = auto()
    """For several, and a list came."""
    NONE = auto()
    """For several, and the answer spoke of none of them."""
    TOO_MANY = auto()
    """The same, or reading it took too many steps for some of them (X5), and fewer of them may do."""
    FAILED = auto()
    """For several, and after it had left no answer came, or a 5xx."""


class Heard(msgspec.Struct, frozen=True):
    """An answer as one of its operations read it."""

    ready: Ready
    operation: Operation
    observed: Observation | Fault

    @property
    def failed(self) -> bool:
        """To this operation it is a transport failure."""
        return isinstance(self.observed, Fault) or self.observed.verdict is Verdict.TRANSPORT_FAILURE

    @staticmethod
    def louder(one: Heard | None, other: Heard) -> Heard:
        """Of two readings of one answer the one that says more of the origin: a job's own trouble is not the
        origin's, as long as another job's entry came."""
        return other if one is None or (one.failed and not other.failed) else one


class Lessons:
    """Tells what is shared what an answer means for the other operations."""

    def __init__(self, shared: Shared, forget: Callable[[str], None]) -> None:
        """*forget*: told the credential whose token was refused."""
        self._shared = shared
        self._forget = forget

    def learn(self, heard: Heard, asked: Sequence[Operation], now: Moment) -> None:
        """Learn from one request. *asked*: every operation that it asked for, as they were when it left."""
        ready, operation, observed = heard.ready, heard.operation, heard.observed
        origin, account = ready.claim.origin, operation.submitted.account
        if isinstance(observed, Fault):
            if observed.kind in decide.SPENDS_FAILURE_BUDGET:
                self._faulted(heard, asked, now)
            return
        if observed.verdict is Verdict.TRANSPORT_FAILURE:
            self._faulted(heard, asked, now)
        else:
            self._shared.answered(origin, account)
        if observed.http.code in (429, 503) and (ms := _asked_for(heard, observed, asked, now)) is not None:
            self._shared.cool_down(operation, Instant(now.wall + ms), BootMs(now.boot + ms))
        credential, digest = operation.credential, ready.secret_digest
        if credential is None or digest is None:
            return
        if observed.http.code == 401:
            self._shared.denied(Denial(credential, origin, UNPROVED + digest if ready.bought else digest, now.wall))
            if ready.bought:
                self._forget(credential)
        elif observed.http.code < 400:
            self._shared.accepted(credential, origin, digest)

    def _faulted(self, heard: Heard, asked: Sequence[Operation], now: Moment) -> None:
        """One fault of the origin, whatever number it asked for. Of several that cannot bear another failure together
        one asks alone first: all at once would be many requests to an origin that may be down."""
        enough = FAULTS_UNTIL_DOWN
        if len(asked) > 1:
            spent = any(batch_requests.failures_left(one) - 1 <= batch_requests.KEPT_FAILURES for one in asked)
            enough = 1 if spent else SHARED_FAULTS_UNTIL_DOWN
        names = [one.operation_id for one in asked]
        self._shared.faulted(heard.operation, heard.ready.claim.origin, now, names, enough=enough)


def _asked_for(heard: Heard, observed: Observation, asked: Sequence[Operation], now: Moment) -> int | None:
    """T4, T8: for how many ms the answer asked everybody to wait; None: for none of those that it was about does its
    guidance hold, and what was refused there stops or delays nobody else either."""
    policy = heard.ready.contract.policy
    for one in asked:
        guidance, _ = decide.valid_guidance(one, observed, policy, now)
        if guidance is not None:
            return guidance.delay_ms
    return None


def went(heard: Heard, brought: Answer | Fault, asked: int, listed: bool, *, costly: bool = False) -> Went | None:
    """What a request for *asked* operations tells of sharing one. *listed*: there were entries in its answer; *costly*:
    more of them than could be read. None: nothing: it never left, or the answer means the same to one alone."""
    observed = heard.observed
    if asked == 1:
        is_answer = isinstance(observed, Observation) and observed.http.code < 400
        return Went.ALONE if is_answer else None
    if isinstance(brought, Fault):
        if brought.kind is FaultKind.TOO_LARGE:
            return Went.TOO_MANY
        if brought.kind in decide.INTEGRATION_FAULTS:
            return Went.NONE if brought.may_have_been_sent else None
        left = brought.may_have_been_sent and brought.kind in decide.SPENDS_FAILURE_BUDGET
        return Went.FAILED if left else None
    if costly:
        return Went.TOO_MANY
    if listed:
        return Went.LISTED
    if heard.failed:
        return Went.FAILED
    if isinstance(observed, Observation) and observed.apart:
        return Went.TOO_MANY if brought.status in TOO_MANY else Went.NONE
    return None
