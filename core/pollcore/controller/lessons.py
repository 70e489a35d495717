"""What one answer teaches about the others: an origin that is down, a cool-down, a refused secret.

Job: (answer as read, who asked) -> what all operations share. Must not know: decisions, stores, how it was read. A
request for several operations teaches once, not once for each of them.
Source: spec T8, T11, H3; contract need R39.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from pollcore import decide
from pollcore.controller.prepare import Ready
from pollcore.controller.shared import Shared
from pollcore.facts import BootMs, Fault, Instant, Moment, Observation, Operation, Verdict
from pollcore.ports import UNPROVED, Denial


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

    def learn(self, heard: Heard, asked: Sequence[str], now: Moment) -> None:
        """Learn from one request. *asked*: every operation that it asked for."""
        ready, operation, observed = heard.ready, heard.operation, heard.observed
        origin, account = ready.claim.origin, operation.submitted.account
        if isinstance(observed, Fault):
            if observed.kind in decide.SPENDS_FAILURE_BUDGET:
                self._shared.faulted(operation, origin, now, asked)
            return
        if observed.verdict is Verdict.TRANSPORT_FAILURE:
            self._shared.faulted(operation, origin, now, asked)
        else:
            self._shared.answered(origin, account)
        if observed.guidance is not None and observed.http.code in (429, 503):
            until = observed.guidance.delay_ms
            self._shared.cool_down(operation, Instant(now.wall + until), BootMs(now.boot + until))
        credential, digest = operation.credential, ready.secret_digest
        if credential is None or digest is None:
            return
        if observed.http.code == 401:
            self._shared.denied(Denial(credential, origin, UNPROVED + digest if ready.bought else digest, now.wall))
            if ready.bought:
                self._forget(credential)
        elif observed.http.code < 400:
            self._shared.accepted(credential, origin, digest)
