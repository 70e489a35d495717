"""`pollconsole run`: the polling core without a screen.

Job: start it, end it cleanly on a signal, say what it did. Must not know: polling.
"""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any, Final

import click
import msgspec

from pollconsole import bridge
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.values import Span

ENDING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
HEALTH_S: Final = 1.0
"""How often the core's health is looked at for a line on stderr."""


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

    Questions that want a human wait for a console. SIGINT, SIGTERM and SIGHUP end it cleanly: requests in flight are
    answered and recorded first, nothing is lost.
    """

    async def body(core: bridge.Core) -> dict[str, Any]:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, _end, stop, number)
        out.note(f"core running on {bridge.home_path(common.home)} (pid {os.getpid()}); end it with ctrl-c or SIGTERM")
        controller = core.controller()
        watch = asyncio.create_task(_tell_health(controller))
        try:
            report = await controller.run(stop, until_idle=until_idle, for_ms=for_ms)
        finally:
            watch.cancel()
        done: dict[str, Any] = msgspec.to_builtins(report)
        return done

    report = calls.with_core(common, body, kind="run")
    if common.json:
        out.document({"run": report})
    else:
        out.text(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in report.items()))


def _end(stop: asyncio.Event, number: int) -> None:
    if not stop.is_set():
        out.note(f"{signal.Signals(number).name}: ending; requests in flight are still recorded")
    stop.set()


async def _tell_health(controller: bridge.Controller) -> None:
    """Say on stderr when the store becomes unusable, and when it is well again."""
    told: str | None = None
    while True:
        health = controller.health
        if health != told:
            out.note(f"nothing is sent: {health}" if health else "the store can be written again: polling goes on")
            told = health
        await asyncio.sleep(HEALTH_S)
