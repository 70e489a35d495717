"""What a waiter may conclude from a record, and what its caller may do next.

Job: status, heartbeats and time -> the end of a wait with its exit code; a record -> one sentence for the caller.
Must not know: the store, event loops, commands. Source: spec S3, S4, G5, O8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Final, Protocol

from pollcore.facts import SECOND, BootMs, Instant, Moment, Operation, Status, iso

POLLING_KINDS: Final = frozenset({"run", "console", "demo"})
"""Kinds of worker that send status requests."""
SILENT_AFTER_MS: Final = 60 * SECOND
"""A core beats every 10 s; silent for longer than this it counts as gone."""
START_GRACE_MS: Final = 10 * SECOND
"""A core that is being started beside the wait gets so long for its first heartbeat."""
LOOK_S: Final = 1.0
"""The longest pause between two looks at heartbeats and time."""
MAX_PERMITS: Final = 60
"""Characters of an action's name in a sentence; a contract's own limit on it."""


class WaitEnd(StrEnum):
    """Why a wait ended."""

    SUCCEEDED = "succeeded"
    DECISION_WANTED = "decision_wanted"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    CLOSED = "closed"
    STILL_WAITING = "still_waiting"
    NO_CORE = "no_core"


CODES: Final[dict[WaitEnd, int]] = {
    WaitEnd.SUCCEEDED: 0,
    WaitEnd.DECISION_WANTED: 10,
    WaitEnd.FAILED: 11,
    WaitEnd.CANCELLED: 12,
    WaitEnd.EXPIRED: 12,
    WaitEnd.STILL_WAITING: 13,
    WaitEnd.CLOSED: 14,
    WaitEnd.NO_CORE: 15,
}
"""Exit codes of `pollconsole wait`; fixed."""

ENDS: Final[dict[Status, WaitEnd]] = {
    Status.SUCCEEDED: WaitEnd.SUCCEEDED,
    Status.ESCALATED: WaitEnd.DECISION_WANTED,
    Status.AWAITING_APPROVAL: WaitEnd.DECISION_WANTED,
    Status.FAILED: WaitEnd.FAILED,
    Status.CANCELLED: WaitEnd.CANCELLED,
    Status.EXPIRED: WaitEnd.EXPIRED,
    Status.CLOSED: WaitEnd.CLOSED,
}
"""A status that is not here goes on waiting."""

WORST_FIRST: Final = (11, 12, 14, 10, 15, 13, 0)
"""Of several operations: a bad end, nobody watches, a person is wanted, no core, only slow, all well."""


class Beat(Protocol):
    """What is read of a worker's heartbeat."""

    @property
    def kind(self) -> str: ...
    @property
    def beat_at(self) -> Instant: ...
    @property
    def beat_boot(self) -> BootMs: ...
    @property
    def boot_id(self) -> str: ...


class Named(Beat, Protocol):
    """A heartbeat that says whose it is."""

    @property
    def owner(self) -> str: ...
    @property
    def host(self) -> str: ...


IsGone = Callable[[str, str], bool]
"""(owner, host) -> whether that worker is proved to have ended; False: it lives, or nobody knows."""


def _nobody_knows(_owner: str, _host: str) -> bool:
    return False


def silent_ms(beats: Iterable[Beat], now: Moment) -> int | None:
    """ms since the newest heartbeat, never negative; None: no core ever ran on this store.

    Under one boot the clock that never steps counts, else wall time.
    """
    ages = [now.boot - beat.beat_boot if beat.boot_id == now.boot_id else now.wall - beat.beat_at for beat in beats]
    return max(0, min(ages)) if ages else None


def core_silence(beats: Iterable[Named], now: Moment, is_gone: IsGone = _nobody_knows) -> int | None:
    """`silent_ms` of the workers that poll.

    A worker that is proved to have ended leaves a heartbeat that is still fresh: without one that lives, the silence
    is longer than SILENT_AFTER_MS whatever its age, so that a wait need not sit a minute beside a core that is gone.
    """
    polling = [beat for beat in beats if beat.kind in POLLING_KINDS]
    silent = silent_ms(polling, now)
    if silent is None or not is_running(silent):
        return silent  # long silent: no proof is wanted
    living = silent_ms([beat for beat in polling if not is_gone(beat.owner, beat.host)], now)
    return living if is_running(living) else SILENT_AFTER_MS + 1


def is_running(silent: int | None) -> bool:
    """Whether a core beat lately enough to count as running."""
    return silent is not None and silent <= SILENT_AFTER_MS


def wait_end(status: Status, silent: int | None, *, waited_ms: int, timeout_ms: int | None) -> WaitEnd | None:
    """Why the wait ends, or None: it goes on.

    No core counts once START_GRACE_MS of waiting passed without a fresh heartbeat, and at the timeout (O8).
    """
    found = ENDS.get(status)
    if found is not None:
        return found
    running = is_running(silent)
    if timeout_ms is not None and waited_ms >= timeout_ms:
        return WaitEnd.STILL_WAITING if running else WaitEnd.NO_CORE
    if not running and waited_ms >= START_GRACE_MS:
        return WaitEnd.NO_CORE
    return None


def worst(codes: Iterable[int]) -> int:
    """The first of *codes* in WORST_FIRST; 0 for none."""
    return min(codes, key=WORST_FIRST.index, default=0)


_ENDED_BADLY: Final[Mapping[Status, str]] = {
    Status.FAILED: "Report that the job failed, with the provider's error",
    Status.CANCELLED: "Report that the job was cancelled",
    Status.EXPIRED: "Report that the job or its record expired at the provider",
}


def next_step(operation: Operation, silent: int | None) -> str:
    """What the caller may do now and what not, in one sentence (S3, G5); no text of a provider is in it.

    Args:
        silent: ms since a core last beat (`core_silence`); None: none ever ran.
    """
    match operation.status:
        case Status.WAITING | Status.HELD:
            return _going_on(operation, silent)
        case Status.AWAITING_APPROVAL:
            return (
                "Stop and report that an operator must approve a request in the console; you may wait again, you may "
                "not approve it, ask the provider yourself or submit the job again."
            )
        case Status.ESCALATED:
            reason = "a decision" if operation.stop_reason is None else operation.stop_reason.value
            return (
                f"Stop and report {reason}, which an operator decides in the console; you may wait again or close the "
                "operation, you may not take a choice for the operator, ask the provider yourself or submit the job "
                "again."
            )
        case Status.SUCCEEDED:
            return _succeeded(operation)
        case Status.CLOSED:
            return (
                "Report that nobody watches this job any more; you may not conclude anything about the job from that, "
                "and not submit it again unasked."
            )
        case bad:
            return f"{_ENDED_BADLY[bad]}; you may close the operation, you may not submit the job again."


def _going_on(operation: Operation, silent: int | None) -> str:
    never = "ask the provider yourself, fetch anything, start what depends on the job, or submit it again"
    if not is_running(silent):
        return (
            "No core is running, so nothing is asked: start 'pollconsole run' or the console, or report it; you may "
            f"not {never}."
        )
    if operation.status is Status.HELD and operation.hold_until is not None:
        return f"Wait again: nothing is sent before {iso(operation.hold_until)}; you may not {never}."
    return (
        "Wait again: this state permits a later observation and nothing else; you may ask for an extension, you may "
        f"not {never}."
    )


def _succeeded(operation: Operation) -> str:
    result = operation.result
    from pollcore.story import visible  # it brings every word of a story, and a console's start needs none

    permits = "fetch_result" if result is None else visible(result.permits)[:MAX_PERMITS]
    said = f"Take the one action that this success permits, {permits}, once, with 'pollconsole fetch'"
    if result is not None and not result.validated:
        said += ", and say that an operator accepted a result that failed validation"
    if result is not None and result.qualifiers:
        said += ", after you have read its qualifiers"
    return f"{said}; you may not fetch in another way, and start nothing that the contract does not permit."
