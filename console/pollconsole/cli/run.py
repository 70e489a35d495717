"""`pollconsole run`: the polling core without a screen.

Job: start it with what goes beside it (notices, metrics, log), end it cleanly on a signal; one line on stderr when it
starts, ends, or something happened to the core itself. Must not know: polling, what any of these do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import Any, Final

import click
import msgspec

from pollconsole import bridge, words
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.run_log import RunLog
from pollconsole.cli.values import Listen, Span
from pollcore.facts import Moment, PollconsoleError, Refused

ENDING: Final = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
WATCH_S: Final = 1.0
"""How often the core's health and notices are looked at for a line on stderr."""
MAX_EVENTS: Final = 1_000
"""Events of one read for the log."""


@command(
    "run",
    "pollconsole run",
    "pollconsole run --until-idle --for 10m",
    "pollconsole run --metrics 127.0.0.1:9464 --log-json",
    short_help="Run the polling core without a screen.",
)
@click.option(
    "--until-idle", is_flag=True, help="End when no operation waits or is held; open questions do not keep it."
)
@click.option("--for", "for_ms", type=Span(), metavar="SPAN", help="End after this time, like 10m [default: no end].")
@click.option("--metrics", type=Listen(), metavar="HOST:PORT",
              help="Tell /healthz and /metrics on this loopback address [default: metrics.listen].")  # fmt: skip
@click.option("--log-json", is_flag=True, help="Say everything on standard error as JSON lines, operations too.")
@pass_common
def run(common: Common, until_idle: bool, for_ms: int | None, metrics: tuple[str, int] | None, log_json: bool) -> None:
    """Run the polling core without a screen, until a signal, the given time, or idleness ends it.

    Open questions wait for an operator at a console. SIGINT, SIGTERM and SIGHUP end it cleanly: requests in flight are
    answered and recorded first, nothing is lost. It is quiet: on standard error stands when it started and ended, and
    when nothing can be sent because the store cannot be written; what operations do, 'list' and 'audit show' tell, and
    the file of log.file.
    """
    bridge.harden()

    async def body(core: bridge.Core) -> dict[str, Any]:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        settings = core.config.log
        try:
            log = RunLog(as_json=log_json, path=settings.file, max_size=settings.max_size, copies=settings.copies)
        except Refused as error:
            raise core.config.placed(error) from None
        beside: list[asyncio.Task[None]] = []

        def say(text: str) -> None:
            log.say(core.clock.now().wall, text)

        for number in ENDING:
            loop.add_signal_handler(number, _end, stop, number, say)
        try:
            controller = core.controller()
            # first what may be refused: nothing says that it runs, and then does not
            beside += bridge.beside(core, controller, say, listen=metrics)
            say(f"core running on {bridge.home_path(common.home)} (pid {os.getpid()}); end it with ctrl-c or SIGTERM")
            started = core.clock.now()
            watch = _Watch(core, controller, log)
            await watch.begin()
            beside.append(asyncio.create_task(watch.run()))
            report = await controller.run(stop, until_idle=until_idle, for_ms=for_ms)
            beside.pop().cancel()
            await watch.look()
            say(_ended(started, core.clock.now(), signalled=stop.is_set(), until_idle=until_idle, for_ms=for_ms))
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            log.close()
        done: dict[str, Any] = msgspec.to_builtins(report)
        return done

    report = calls.with_core(common, body, kind="run", makes=True)
    if common.json:
        out.document({"run": report})
    else:
        out.text(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in report.items()))


def _end(stop: asyncio.Event, number: int, say: Any) -> None:
    if not stop.is_set():
        say(f"{signal.Signals(number).name}: ending; requests in flight are still recorded")
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


class _Watch:
    """Says when the store becomes unusable, when it is well again, and what the core has noticed; logs what happens."""

    def __init__(self, core: bridge.Core, controller: bridge.Controller, log: RunLog) -> None:
        self._core = core
        self._controller = controller
        self._log = log
        self._told: str | None = None
        self._after: int | None = None
        """Number of the event that was logged last; None: events are not logged, or could not be read yet."""

    async def begin(self) -> None:
        """What happened before is not logged."""
        if self._log.as_json or self._log.writes_file:
            with contextlib.suppress(PollconsoleError):
                self._after = (await bridge.latest(self._core, None, 0))[0]

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(WATCH_S)

    async def look(self) -> None:
        """What is new since the last look."""
        health, now = self._controller.health, self._core.clock.now().wall
        if health != self._told:
            well = "the store can be written again: polling goes on"
            self._log.say(now, f"nothing is sent: {health}" if health else well)
            self._told = health
        while self._core.notices:
            self._log.say(now, self._core.notices.pop(0))
        if self._after is None:
            return
        with contextlib.suppress(PollconsoleError):  # the health says it
            while page := await self._core.store.events(after=self._after, limit=MAX_EVENTS):
                for number, event in page:
                    self._after = number
                    self._log.event(event)
