"""`pollconsole run`: the polling core without a screen.

Job: start it, end it cleanly on a signal; one line on stderr when it starts, ends, or something happened to the core
itself. Must not know: polling.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any, Final

import click
import msgspec

from pollconsole import bridge, words
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.values import Span
from pollcore.facts import Moment

ENDING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
WATCH_S: Final = 1.0
"""How often the core's health and notices are looked at for a line on stderr."""


@command(
    "run",
    "pollconsole run",
    "pollconsole run --until-idle --for 10m",
    short_help="Run the polling core without a screen.",
)
@click.option(
    "--until-idle", is_flag=True, help="End when no operation waits or is held; open questions do not keep it."
)
@click.option("--for", "for_ms", type=Span(), metavar="SPAN", help="End after this time.")
@pass_common
def run(common: Common, until_idle: bool, for_ms: int | None) -> None:
    """Run the polling core without a screen, until a signal, the given time, or idleness ends it.

    Open questions wait for an operator at a console. SIGINT, SIGTERM and SIGHUP end it cleanly: requests in flight are
    answered and recorded first, nothing is lost. It is quiet: on standard error stands when it started and ended, and
    when nothing can be sent because the store cannot be written; what operations do, 'list' and 'audit show' tell.
    """
    bridge.harden()

    async def body(core: bridge.Core) -> dict[str, Any]:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, _end, stop, number)
        out.note(f"core running on {bridge.home_path(common.home)} (pid {os.getpid()}); end it with ctrl-c or SIGTERM")
        controller = core.controller()
        started = core.clock.now()
        watch = asyncio.create_task(_watch(core, controller))
        try:
            report = await controller.run(stop, until_idle=until_idle, for_ms=for_ms)
        finally:
            watch.cancel()
        out.note(_ended(started, core.clock.now(), signalled=stop.is_set(), until_idle=until_idle, for_ms=for_ms))
        done: dict[str, Any] = msgspec.to_builtins(report)
        return done

    report = calls.with_core(common, body, kind="run", makes=True)
    if common.json:
        out.document({"run": report})
    else:
        out.text(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in report.items()))


def _end(stop: asyncio.Event, number: int) -> None:
    if not stop.is_set():
        out.note(f"{signal.Signals(number).name}: ending; requests in flight are still recorded")
    stop.set()


def _ended(started: Moment, now: Moment, *, signalled: bool, until_idle: bool, for_ms: int | None) -> str:
    """Why and after how long; a run with a time that ended before it was idle."""
    ran = now.boot - started.boot
    if signalled:
        why = "by a signal"
    elif for_ms is not None and ran >= for_ms:
        why = "the time of --for is over"
    else:
        why = "no operation waits or is held" if until_idle else "it was told to"
    return f"core ended after {words.span(ran)}: {why}"


async def _watch(core: bridge.Core, controller: bridge.Controller) -> None:
    """Say on stderr when the store becomes unusable, when it is well again, and what the core has noticed."""
    told: str | None = None
    while True:
        health = controller.health
        if health != told:
            out.note(f"nothing is sent: {health}" if health else "the store can be written again: polling goes on")
            told = health
        while core.notices:
            out.note(core.notices.pop(0))
        await asyncio.sleep(WATCH_S)
