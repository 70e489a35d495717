#!/usr/bin/env python3
"""Does the console's memory stay flat over a day? The real app under a headless driver, its core held in memory.

10,000 operations, one tick of the screen for each second of the day (--ticks, compressed), ten rows that change with
each; --cards cards opened and left, every tenth of them decided with both keys; story, queue, help and filter in
between. Prints the resident memory at 10 %, 50 % and 100 %, and what grew in number of objects.

    python tests/bench/console_day.py [--ticks 86400] [--cards 1000] [--live 10000]
"""

import argparse
import asyncio
import collections
import gc
import os

from _console import noise, told

from tests.console.screens.fakes import FakeCore
from tests.console.screens.harness import choose, confirm, console, open_card, until
from tests.console.seed import many, stopped

import msgspec
from pollcore.facts import SECOND, Instant, Status, StopReason

GC_SHOWN = 12
CHANGED = 10
SPENT = 0x500000
TRIES = 100


def rss_mb():
    with open("/proc/self/statm") as f:
        return round(int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def counted():
    gc.collect()
    return collections.Counter(type(each).__name__ for each in gc.get_objects())


async def back(app, pilot):
    """Esc until the list is on top."""
    for _ in range(TRIES):
        await pilot.pause(0.02)
        if app.screen is app._live:
            return
        await pilot.press("escape")
    raise SystemExit(f"{app.screen} does not go away")


async def visit(app, pilot, core, n, decide):
    """One card: opened, read to its end, decided or left. A screen beside it every few."""
    asked = stopped(SPENT + n, StopReason.REQUEST_BUDGET_EXHAUSTED, now=core.clock.now(), status_requests_used=12)
    row, question = asked.operation, asked.question
    core.store.put(row, question, asked.events)
    await until(pilot, lambda: row.operation_id in app.state.board.questions, "the question came")
    if decide:
        card = await open_card(app, pilot, row.operation_id)
        await choose(app, pilot, card, "close")
        await confirm(app, pilot, card)
    else:
        app.opens("card", row.operation_id)
        await until(pilot, lambda: getattr(app.screen, "shown", None), "the card is there")
    await back(app, pilot)
    for keys in ((), ("enter",), ("E",), ("question_mark",), ("M",))[n % 5 : n % 5 + 1]:
        if keys:
            await pilot.press(*keys)
            await pilot.pause(0.02)
            await back(app, pilot)
    ended = msgspec.structs.replace(core.store.rows[row.operation_id], status=Status.CLOSED)
    core.store.put(ended, ask=True)
    await until(pilot, lambda: row.operation_id not in app.state.board.questions, "the question has gone")


async def day(a):
    core = FakeCore(many(a.live))
    ids = [row.operation.operation_id for row in many(a.live)]
    every = max(1, a.ticks // max(1, a.cards))
    marks = {max(1, a.ticks * part // 100): part for part in (10, 50, 100)}
    figures, objects = {}, {}
    async with console(core.runner, size=(120, 40)) as (app, pilot):
        recorded = app._driver
        for n in range(1, a.ticks + 1):
            core.clock.forward(SECOND)
            now = core.clock.now()
            for k in range(CHANGED):
                row = app.state.board.operations[ids[(n * CHANGED + k) % len(ids)]]
                due = Instant(now.wall + 60 * SECOND)
                row = msgspec.structs.replace(
                    row,
                    change=row.change + 1,
                    next_poll_at=due,
                    completed_polls=n,
                    deadline_at=Instant(now.wall + 600_000),
                )
                app.state.link.mailbox.put((row,))
            app._tick()
            if n % 25 == 0:
                await pilot.pause()
                recorded.frames.clear()  # the harness keeps what was written; a terminal does not
            if n % every == 0:
                await visit(app, pilot, core, n // every, n // every % 10 == 0)
            if n in marks:
                await pilot.pause(0.2)
                recorded.frames.clear()
                objects[marks[n]] = counted()
                figures[f"rss_mb_at_{marks[n]}_percent"] = rss_mb()
                told(bench="day", ticks=n, **figures)
    grew = objects[100] - objects[10]
    told(bench="day", ticks=a.ticks, cards=a.cards, **figures, grew=dict(grew.most_common(GC_SHOWN)), **noise())


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--ticks", type=int, default=86_400)
    ap.add_argument("--cards", type=int, default=1_000)
    ap.add_argument("--live", type=int, default=10_000)
    asyncio.run(day(ap.parse_args()))
