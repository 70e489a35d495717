"""Ordinary jobs, as many as the table needs to look alive: some at once, more as time goes on.

Job: (seed) -> cases with plausible names, lengths and ends. Must not know: how they are served or handed over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from pollconsole.demo.cases import AGENT, CALLER, Case, Expect, done, error, stopped
from pollconsole.demo.dialects import BATCH, EXPORT, RENDER, Dialect
from pollconsole.demo.lives import Life, Reply, each
from pollcore.facts import Status, StopReason

AT_ONCE: Final = 14
"""Ordinary jobs that run when the demo begins."""
MAX_ARRIVALS: Final = 1_000
"""Jobs that come later, all in all: the demo is bounded."""
GAP_S: Final = (25.0, 55.0)
"""Demo time between two arrivals."""
MISBEHAVES: Final = 5
"""Every so many arrivals, one does."""

_LABELS: Final = {
    RENDER.provider: (
        "trailer, cut {n}",
        "b-roll, reel {n}",
        "title card {n}",
        "stills, set {n}",
        "teaser {n}, square",
    ),
    EXPORT.provider: ("orders, day {n}", "stock, shelf {n}", "logs, part {n}", "invoices, batch {n}"),
    BATCH.provider: ("translation, set {n}", "tagging, set {n}", "captions, set {n}", "scoring, run {n}"),
}
_PREFIX: Final = {RENDER.provider: "vid", EXPORT.provider: "exp", BATCH.provider: "bat"}


class Arrival(msgspec.Struct, frozen=True):
    """A job that comes at *at_s* of demo time."""

    at_s: float
    case: Case


def spaced(cases: Iterable[Case], first_s: float, gap_s: float) -> Iterator[Arrival]:
    """Cases that come one after the other, so that a newcomer sees each of them happen."""
    for n, case in enumerate(cases):
        yield Arrival(first_s + n * gap_s, case)


def at_once(seed: int) -> tuple[Case, ...]:
    """The jobs that run already: each some way into its life, each with time left. Ids `op-101` and on."""
    draws = random.Random(f"at once {seed}")
    return tuple(_running(draws, n) for n in range(1, AT_ONCE + 1))


def arrivals(seed: int) -> Iterator[Arrival]:
    """At most MAX_ARRIVALS, in order of time. Ids `op-1001` and on."""
    draws = random.Random(f"arrivals {seed}")
    at_s = GAP_S[0]
    for n in range(1, MAX_ARRIVALS + 1):
        yield Arrival(at_s, _arriving(draws, n))
        at_s += draws.uniform(*GAP_S)


def _running(draws: random.Random, n: int) -> Case:
    dialect = (RENDER, EXPORT, BATCH)[n % 3]
    ago_s = draws.uniform(60, 900)
    left_s = draws.uniform(240, 1_500)
    case = _named(draws, dialect, f"op-{100 + n}", n)
    course = dialect.course(draws.uniform(20, 60), ago_s + left_s)
    return msgspec.structs.replace(case, life=course, started_ago_s=ago_s)


def _arriving(draws: random.Random, n: int) -> Case:
    dialect = draws.choice((RENDER, RENDER, EXPORT, BATCH))
    case = _named(draws, dialect, f"op-{1_000 + n}", 100 + n)
    queued_s, run_s = draws.uniform(10, 60), draws.uniform(120, 1_200)
    if n % MISBEHAVES:
        return msgspec.structs.replace(case, life=dialect.course(queued_s, run_s))
    about, make, expect = _LATER[n // MISBEHAVES % len(_LATER)]
    return msgspec.structs.replace(case, life=make(dialect), about=about, expect=expect)


def _named(draws: random.Random, dialect: Dialect, operation_id: str, n: int) -> Case:
    return Case(
        operation_id=operation_id,
        dialect=dialect,
        job_id=f"{_PREFIX[dialect.provider]}_{draws.randrange(16**4):04x}{n:03x}",
        label=draws.choice(_LABELS[dialect.provider]).format(n=n),
        about="",
        life=(),
        caller=AGENT if n % 4 == 0 else CALLER,
        params={"input": f"input-{n}"} if dialect is RENDER else {},
    )


def _compiling(dialect: Dialect) -> Life:
    return each(Reply(state=dialect.queued), Reply(state=dialect.running), Reply(state="compiling"))


def _failing(dialect: Dialect) -> Life:
    state = "ERROR" if dialect is EXPORT else "failed"
    ended = Reply(state=state, fields=error("out_of_memory", "the worker was killed"))
    return dialect.course(20, 150, ended)


def _empty(dialect: Dialect) -> Life:
    return dialect.course(20, 200, Reply(state=dialect.done))


def _guided(dialect: Dialect) -> Life:
    later = Reply(state=dialect.running, headers={"Retry-After": "45"})
    return each(Reply(state=dialect.queued), later, later, done(dialect))


_LATER: Final[tuple[tuple[str, Callable[[Dialect], Life], Expect], ...]] = (
    ("fails later on", _failing, Expect(Status.FAILED, StopReason.JOB_FAILED)),
    ("a state that nobody listed", _compiling, stopped(StopReason.UNKNOWN_STATE)),
    ("guided, and well", _guided, Expect(Status.SUCCEEDED)),
    ("done without a result", _empty, stopped(StopReason.INTEGRATION_FAILURE)),
)
