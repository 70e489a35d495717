"""`pollconsole wait`: block until an operation needs someone or has ended, without asking the provider anything.

Job: status -> exit code, and when to stop waiting. Must not know: polling.
"""

from __future__ import annotations

from typing import Any, Final

import click

from pollconsole import bridge
from pollconsole.cli import calls, liveness, out, present
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.values import OperationId, Span
from pollcore.facts import SECOND, Moment, Operation, Status

STILL_WAITING: Final = 13
NO_CORE: Final = 15
EXIT: Final[dict[Status, int]] = {
    Status.SUCCEEDED: 0,
    Status.ESCALATED: 10,
    Status.AWAITING_APPROVAL: 10,
    Status.FAILED: 11,
    Status.CANCELLED: 12,
    Status.EXPIRED: 12,
    Status.CLOSED: 14,
}
"""Fixed; a status that is not here goes on waiting."""

START_GRACE_MS: Final = 10 * SECOND
"""A core that is being started beside the wait gets so long for its first heartbeat."""
LOOK_S: Final = 1.0
"""The longest pause between two looks at heartbeats and time."""


def verdict(
    operation: Operation, silent: int | None, *, now: Moment, started: Moment, timeout_ms: int | None
) -> int | None:
    """The exit code, or None: go on waiting. Pure.

    No core counts once *START_GRACE_MS* of waiting passed without a fresh heartbeat, and at the timeout.
    """
    code = EXIT.get(operation.status)
    if code is not None:
        return code
    waited = max(0, now.boot - started.boot)
    running = liveness.is_running(silent)
    if timeout_ms is not None and waited >= timeout_ms:
        return STILL_WAITING if running else NO_CORE
    if not running and waited >= START_GRACE_MS:
        return NO_CORE
    return None


@command(
    "wait",
    "pollconsole wait op-1f2e3d4c",
    "pollconsole wait op-1f2e3d4c --timeout 10m --json; echo $?",
    short_help="Block until it ended or a decision is wanted.",
)
@click.argument("op", type=OperationId())
@click.option("--timeout", type=Span(zero=True), metavar="SPAN", help="Stop waiting after this (0s: look once).")
@click.pass_context
@pass_common
def wait(common: Common, ctx: click.Context, op: str, timeout: int | None) -> None:
    """Block until an operation has ended or wants a decision. The provider is not asked anything.

    A question on a wait that goes on, such as an extension that was asked for, does not end it. Without a core it waits
    10 s for one to start, then ends with 15; with a shorter --timeout, at the timeout.

    \b
    Exit codes:
      0   succeeded
      10  a decision is wanted: escalated, or awaiting approval
      11  failed
      12  cancelled or expired
      13  still waiting at the timeout
      14  closed: nobody watches any more
      15  no core is running
    and 1, 2, 130, 141 as every command.
    """

    async def body(core: bridge.Core) -> tuple[int, dict[str, Any], str | None]:
        started = core.clock.now()
        while True:
            change = await core.store.change()
            operation = await bridge.find(core, op)
            silent = await present.core_silence(core)
            now = core.clock.now()
            code = verdict(operation, silent, now=now, started=started, timeout_ms=timeout)
            if code is not None:
                return code, await bridge.whole(core, op), liveness.warning(silent)
            pause = LOOK_S
            if timeout is not None:
                pause = min(pause, max(0.001, (timeout - (now.boot - started.boot)) / SECOND))
            await core.store.wait_for_change(change, pause)

    code, view, silence = calls.with_core(common, body)
    if common.json:
        out.document(view)
    else:
        out.text(present.one_line(view))
    if silence and code in (STILL_WAITING, NO_CORE):
        out.note(silence)
    if code == EXIT[Status.ESCALATED]:
        key = "A" if view["status"] == Status.AWAITING_APPROVAL else "E"
        out.note(f"a decision is wanted: an operator decides in the console ('pollconsole', key {key})")
    elif code in (STILL_WAITING, NO_CORE) and view["escalation"]:
        out.note(f"a question is open ({view['escalation']['reason']}); the wait goes on meanwhile")
    ctx.exit(code)
