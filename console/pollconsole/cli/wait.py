"""`pollconsole wait`: block until operations need someone or have ended, without asking the provider anything.

Job: statuses -> exit code, and when to stop waiting. Must not know: polling.
"""

from __future__ import annotations

from typing import Any, Final

import click
import msgspec

from pollconsole import bridge
from pollconsole.bridge.waiting import (
    CODES,
    ENDS,
    LOOK_S,
    START_GRACE_MS,
    WaitEnd,
    changed,
    next_step,
    silence_of,
    wait_end,
    worst,
)
from pollconsole.cli import calls, liveness, out, present
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.values import OperationId, Span
from pollcore.facts import SECOND, Moment, Operation, Refused, Status

__all__ = ["EXIT", "MAX_WAITED", "NO_CORE", "START_GRACE_MS", "STILL_WAITING", "verdict", "wait"]

STILL_WAITING: Final = CODES[WaitEnd.STILL_WAITING]
NO_CORE: Final = CODES[WaitEnd.NO_CORE]
EXIT: Final[dict[Status, int]] = {status: CODES[end] for status, end in ENDS.items()}
"""Fixed; a status that is not here goes on waiting."""
MAX_WAITED: Final = 200
"""Operations of one call."""


def verdict(
    operation: Operation, silent: int | None, *, now: Moment, started: Moment, timeout_ms: int | None
) -> int | None:
    """The exit code, or None: go on waiting. Pure; see the core's `wait_end`."""
    waited = max(0, now.boot - started.boot)
    end = wait_end(operation.status, silent, waited_ms=waited, timeout_ms=timeout_ms)
    return None if end is None else CODES[end]


class Waited(msgspec.Struct, frozen=True):
    """How a wait ended: codes by operation (absent: it goes on, and another ended first), documents, silence in ms."""

    code: int
    codes: dict[str, int]
    views: list[dict[str, Any]]
    silence: int | None


@command(
    "wait",
    "pollconsole wait op-1f2e3d4c",
    "pollconsole wait op-1f2e3d4c --timeout 10m --json; echo $?",
    "pollconsole wait export-1 export-2 export-3 --any",
    short_help="Block until it ended or a decision is wanted.",
    exits={
        0: "succeeded",
        10: "a decision is wanted: escalated, or awaiting approval",
        11: "failed",
        12: "cancelled or expired",
        13: "still waiting at the timeout",
        14: "closed: nobody watches any more",
        15: "no core is running",
    },
)
@click.argument("ops", metavar="OP...", type=OperationId(), nargs=-1, required=True)
@click.option(
    "--timeout",
    type=Span(zero=True),
    metavar="SPAN",
    help="Stop waiting after this, like 90s or 10m; 0s: look once [default: never].",
)
@click.option("--any", "any_", is_flag=True, help="Of several: stop with the first that ended.")
@click.option("--all", "all_", is_flag=True, help="Of several: stop when none goes on (this is the default).")
@click.pass_context
@pass_common
def wait(
    common: Common, ctx: click.Context, ops: tuple[str, ...], timeout: int | None, any_: bool, all_: bool
) -> None:  # fmt: skip
    """Block until operations have ended or want a decision.

    The provider is not asked anything. A question on a wait that goes on, such as an extension that was asked for,
    does not end it. Without a core it waits 10 s for one to start, then ends with 15; with a shorter --timeout, at
    the timeout.

    Of several operations, --any ends with the first that ended (of those that have ended already, the first that is
    named), and its code; --all ends when none goes on, with the worst code in the order 11, 12, 14, 10, 15, 13, 0.
    """
    if any_ and all_:
        raise click.UsageError("--any and --all exclude each other; give one")
    names = tuple(dict.fromkeys(ops))
    if len(names) > MAX_WAITED:
        raise Refused(f"{len(names)} operations; one call waits for at most {MAX_WAITED}", code="limit")
    waited = calls.with_core(common, lambda core: _wait(core, names, timeout, any_))
    _tell(common, names, waited)
    ctx.exit(waited.code)


async def _wait(core: bridge.Core, names: tuple[str, ...], timeout: int | None, any_: bool) -> Waited:
    started, change = core.clock.now(), await core.store.change()
    records = {name: await bridge.find(core, name) for name in names}
    while True:
        silent, now = await silence_of(core), core.clock.now()
        codes = {
            name: code
            for name, operation in records.items()
            if (code := verdict(operation, silent, now=now, started=started, timeout_ms=timeout)) is not None
        }
        if codes and (any_ or len(codes) == len(names)):
            shown = await _views(core, names, codes, silent)
            code = _first(codes) if any_ else worst(codes.values())
            return Waited(code, codes, shown, silent)
        pause = LOOK_S
        if timeout is not None:
            pause = min(pause, max(0.001, (timeout - (now.boot - started.boot)) / SECOND))
        seen = await core.store.wait_for_change(change, pause)
        if seen != change:
            records |= {operation.operation_id: operation for operation in await changed(core, change, names)}
            change = seen


def _first(codes: dict[str, int]) -> int:
    """--any: the code of the first that ended; one that goes on counts only where none did."""
    ended = [code for code in codes.values() if code not in (STILL_WAITING, NO_CORE)]
    return next(iter(ended), next(iter(codes.values())))


async def _views(
    core: bridge.Core, names: tuple[str, ...], codes: dict[str, int], silent: int | None
) -> list[dict[str, Any]]:
    """The documents of `show`, each with what its caller may do next."""
    views = []
    for name in names:
        view = await bridge.whole(core, name)
        view["next"] = next_step(await bridge.find(core, name), silent)
        if len(names) > 1:
            view["exit_code"] = codes.get(name)
        views.append(view)
    return views


def _tell(common: Common, names: tuple[str, ...], waited: Waited) -> None:
    if common.json and len(names) == 1:
        out.document(waited.views[0])
    elif common.json:
        out.document({"operations": waited.views, "exit_code": waited.code})
    else:
        for view in waited.views:
            out.text(present.one_line(view))
    silence = liveness.warning(waited.silence)
    if silence and waited.code in (STILL_WAITING, NO_CORE):
        out.note(silence)
    for view in waited.views:
        code = waited.codes.get(view["operation_id"])
        which = "" if len(names) == 1 else f"{view['operation_id']}: "
        if code == EXIT[Status.ESCALATED]:
            key = "A" if view["status"] == Status.AWAITING_APPROVAL else "E"
            out.note(f"{which}a decision is wanted: an operator decides in the console ('pollconsole', key {key})")
        elif code in (STILL_WAITING, NO_CORE) and view["escalation"]:
            out.note(f"{which}a question is open ({view['escalation']['reason']}); the wait goes on meanwhile")
