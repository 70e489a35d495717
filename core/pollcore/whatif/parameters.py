"""What a simulation is asked: how many waits, how they arrive, how long jobs run, how the provider behaves.

Job: the parameters, and refusals that name the limit. Must not know: contracts, how anything is simulated, texts that
a command line takes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec

from pollcore.facts import DAY, MAX_SPAN, MINUTE, SECOND, Refused
from pollcore.submission import span_text

Source = Callable[[], float]
"""Chance: each call gives a number from [0.0, 1.0)."""

MAX_OPERATIONS: Final = 1_000_000
MAX_EXACT: Final = 20_000
"""So many operations are simulated one by one; more are scaled from a sample of this size."""
MIN_INTERVAL: Final = 1 * SECOND
"""The shortest interval of the loop that a schedule is compared with; it is a whole number of seconds."""
MAX_RATE: Final = 1_000_000
"""Requests a minute: a higher limit limits nothing here."""
MAX_FAILURE_RATE: Final = 0.99
MAX_SPREAD: Final = 100.0
"""Of a log-normal job time: 68 % of the jobs take between median / spread and median x spread."""
LEAST_SCALED_RATE: Final = 10.0
"""Requests a minute: a shared limit that a sample's part of it falls below cannot be scaled."""


class Arrivals(StrEnum):
    """How operations are handed over during the simulated time."""

    SPREAD = "spread"
    """Evenly."""
    BURST = "burst"
    """All at its beginning."""
    POISSON = "poisson"
    """Independently of each other, at random times."""


class JobTime(msgspec.Struct, frozen=True):
    """How long jobs run, from the hand-over, in ms. *shape*: `fixed` (low), `uniform` (low to high), `lognormal`
    (median *low*, *spread*)."""

    shape: str
    low: int
    high: int = 0
    spread: float = 1.0

    def draw(self, source: Source) -> int:
        """One job's time in ms, from 1 to MAX_SPAN."""
        if self.shape == "uniform":
            return min(self.high, self.low + int((self.high - self.low + 1) * source()))
        if self.shape == "lognormal":
            # Box-Muller; 1 - u is above zero
            normal = math.sqrt(-2.0 * math.log(1.0 - source())) * math.cos(2.0 * math.pi * source())
            return max(1, min(MAX_SPAN, round(self.low * math.exp(math.log(self.spread) * normal))))
        return self.low

    @property
    def middle(self) -> int:
        """Half of the jobs take no longer, ms."""
        return (self.low + self.high) // 2 if self.shape == "uniform" else self.low


class Outage(msgspec.Struct, frozen=True):
    """The provider refuses connections from *start* on, counted from the beginning, for *span*; ms. Jobs go on."""

    start: int
    span: int

    def holds(self, at: int) -> bool:
        return self.start <= at < self.start + self.span


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """All spans in ms. What is None is the contract's, or not there."""

    operations: int
    duration: int
    """During which the operations are handed over; each is followed to its end."""
    job_time: JobTime | None = None
    """None: the contract's expected duration."""
    arrivals: Arrivals = Arrivals.SPREAD
    failure_rate: float = 0.0
    """Share of the requests that bring no answer (a connection that is refused)."""
    rate_limit_per_minute: int | None = None
    """The provider answers 429 beyond so many requests in one of its minutes."""
    retry_after: bool = True
    """Its 429 says when the next of its minutes begins."""
    guidance: int | None = None
    """Every answer of a running job carries `Retry-After` with this span, in whole seconds."""
    outage: Outage | None = None
    compare_interval: int = 30 * SECOND
    deadline: int | None = None
    max_status_requests: int | None = None
    sample: int = MAX_EXACT

    @property
    def simulated(self) -> int:
        """Operations that are simulated one by one."""
        return min(self.operations, self.sample)

    @property
    def weight(self) -> float:
        """How many operations a simulated one stands for; 1.0: the simulation is exact."""
        return self.operations / self.simulated


def check(asked: Parameters) -> None:
    """Raises Refused, code `limit`: a value is absurd; the message names what is accepted."""
    _between("--operations", asked.operations, 1, MAX_OPERATIONS)
    _span("--duration", asked.duration)
    _between("the size of the sample", asked.sample, 2, MAX_EXACT)
    if asked.job_time is not None:
        _check_job_time(asked.job_time)
    if not 0.0 <= asked.failure_rate <= MAX_FAILURE_RATE:
        raise _refused("--failure-rate", f"{asked.failure_rate:g} is not in 0 to {MAX_FAILURE_RATE:g}")
    if asked.guidance is not None:
        _whole_seconds("--guidance", asked.guidance)
    if asked.outage is not None:
        if not 0 <= asked.outage.start <= MAX_SPAN:
            raise _refused("--outage", f"its start must lie within {MAX_SPAN // DAY} days from the beginning")
        _span("--outage", asked.outage.span)
    _whole_seconds("--compare-interval", asked.compare_interval)
    if asked.rate_limit_per_minute is not None:
        _between("--rate-limit-per-minute", asked.rate_limit_per_minute, 1, MAX_RATE)
        check_scaled("--rate-limit-per-minute", asked.rate_limit_per_minute, MINUTE, asked)


def check_scaled(name: str, requests: int, per_ms: int, asked: Parameters) -> None:
    """Raises Refused: a limit shared by all operations is too small to be split for a sample."""
    a_minute = requests * MINUTE / per_ms
    if asked.weight > 1.0 and a_minute / asked.weight < LEAST_SCALED_RATE:
        most = max(asked.sample, int(a_minute * asked.sample / LEAST_SCALED_RATE))
        raise _refused(
            name,
            f"{a_minute:g} requests a minute for {asked.operations:,} operations cannot be scaled from a sample of "
            f"{asked.sample:,}; simulate {most:,} operations or fewer",
        )


def _check_job_time(time: JobTime) -> None:
    _span("--job-time", time.low)
    if time.shape == "uniform":
        _span("--job-time", time.high)
        if time.high < time.low:
            raise _refused(
                "--job-time", f"{span_text(time.low)} to {span_text(time.high)} falls; write the lower first"
            )
    if time.shape == "lognormal" and not 1.0 <= time.spread <= MAX_SPREAD:
        raise _refused("--job-time", f"a spread of {time.spread:g} is not in 1 to {MAX_SPREAD:g}")


def _span(name: str, value: int) -> None:
    if not 1 <= value <= MAX_SPAN:
        raise _refused(name, f"{span_text(value)} is not above 0 and at most {MAX_SPAN // DAY} days")


def _whole_seconds(name: str, value: int) -> None:
    _span(name, value)
    if value < MIN_INTERVAL or value % SECOND:
        raise _refused(name, f"{span_text(value)} is not a whole number of seconds, at least 1 s")


def _between(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise _refused(name, f"{value:,} is not in {low:,} to {high:,}")


def _refused(name: str, why: str) -> Refused:
    return Refused(f"{name}: {why}", code="limit", limit=name.removeprefix("--").replace("-", "_"))
