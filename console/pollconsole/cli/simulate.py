"""`simulate`: what a contract's schedule would cost, before anything is sent.

Job: arguments, figures for people, the document. Must not know: how a simulation runs.
"""

from __future__ import annotations

from typing import Any

import click

from pollconsole import bars, bridge, words
from pollconsole.bridge.whatif import ARRIVALS
from pollconsole.bridge.whatif import simulate as played
from pollconsole.cli import out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.provider import is_file, text_of
from pollconsole.cli.values import Count, JobTime, Outage, ProviderName, Share, Span
from pollcore.facts import DAY, HOUR, MINUTE


@command(
    "simulate",
    "pollconsole simulate --provider mux-asset --operations 20000 --duration 24h --job-time 10m/2",
    "pollconsole simulate --provider ./acme.toml --operations 500 --duration 1h --job-time 5m..20m --json",
    short_help="What a schedule would cost, before anything is sent.",
)
@click.option(
    "--provider",
    type=ProviderName(),
    required=True,
    metavar="NAME|FILE",
    help="A contract, a configured provider, or a contract file (a path with / or .toml).",
)
@click.option("--operations", type=Count(), required=True, metavar="N", help="How many, at most 1,000,000.")
@click.option("--duration", type=Span(), required=True, metavar="SPAN", help="During which they are handed over.")
@click.option(
    "--job-time",
    type=JobTime(),
    metavar="SPAN|A..B|MEDIAN/SPREAD",
    help="How long jobs run: 10m; evenly 5m..20m; log-normal 10m/2, where 68 % take 5 to 20 min "
    "[default: the contract's expected_duration].",
)
@click.option(
    "--arrivals",
    type=click.Choice(ARRIVALS),
    default="spread",
    show_default=True,
    help="Evenly, all at the beginning, or at random.",
)
@click.option("--failure-rate", type=Share(), default="0", metavar="SHARE", help="Requests without an answer, 0.02.")
@click.option("--rate-limit-per-minute", type=Count(), metavar="N", help="The provider answers 429 beyond N a minute.")
@click.option("--no-retry-after", is_flag=True, help="Its 429 does not say when to ask again.")
@click.option("--guidance", type=Span(), metavar="SPAN", help="Answers of running jobs carry Retry-After: SPAN.")
@click.option("--outage", type=Outage(), metavar="START+SPAN", help="No connection from START on, for SPAN: 2h+30m.")
@click.option("--deadline", type=Span(), metavar="SPAN", help="As in submit [default: the contract's].")
@click.option("--max-requests", type=Count(), metavar="N", help="As in submit [default: the contract's].")
@click.option(
    "--compare-interval",
    type=Span(),
    default="30s",
    show_default=True,
    metavar="SPAN",
    help="Of the loop that it is compared with.",
)
@click.option("--seed", type=Count(), default="1", show_default=True, metavar="N", help="The same seed, the same run.")
@pass_common
def simulate(
    common: Common,
    provider: str,
    operations: int,
    duration: int,
    job_time: tuple[str, int, int, float] | None,
    arrivals: str,
    failure_rate: float,
    rate_limit_per_minute: int | None,
    no_retry_after: bool,
    guidance: int | None,
    outage: tuple[int, int] | None,
    deadline: int | None,
    max_requests: int | None,
    compare_interval: int,
    seed: int,
) -> None:
    """Play the waits of a contract and count what they would send.

    Nothing is sent, no home and no secret is needed.

    Event by event, by the rules that real waits follow, with the contract's limits, delays and jitter: requests, the
    busiest second and minute, how late a job's end is seen, and the questions that deadline and budgets would raise;
    beside a loop that asks at a fixed interval. An answer takes no time here.

    Up to 20,000 operations are played one by one. More are scaled from a sample of 20,000, with 99 % intervals.
    """
    asked = {
        "operations": operations,
        "duration": duration,
        "job_time": job_time,
        "arrivals": arrivals,
        "failure_rate": failure_rate,
        "rate_limit_per_minute": rate_limit_per_minute,
        "retry_after": not no_retry_after,
        "guidance": guidance,
        "outage": outage,
        "compare_interval": compare_interval,
        "deadline": deadline,
        "max_status_requests": max_requests,
    }
    missing = bridge.missing_home(common.home) if bridge.home_is_named(common.home) else None
    if missing is not None:
        out.note(f"no home at {missing}: only contracts that ship with pollconsole are known")
    text = text_of(provider) if is_file(provider) else None
    found = played(bridge.without_store(common.home), provider, text, asked, seed)
    if common.json:
        out.document(found)
    else:
        out.text("\n".join(told(found)))


def told(found: dict[str, Any]) -> list[str]:
    """The figures for people: what was played, a table, the questions, a chart."""
    planned, fixed = found["planned"], found["fixed_interval"]
    every = words.span(found["asked"]["compare_interval_ms"])
    head = ("", "THIS SCHEDULE", f"EVERY {every.upper()}")
    lines = [*_what(found), "", *words.table(head, _rows(planned, fixed)).split("\n")]
    over = fixed["over_rate_limit"]
    if over is not None and over["value"]:
        lines.append(f"{over['value']:,} requests of the loop are beyond the provider's limit; it does not heed them")
    lines += ["", *_questions(found)]
    rows = [(_label(part["at_ms"], found["part_ms"]), part["requests"]) for part in found["by_time"]]
    lines += ["", f"requests by {words.span(found['part_ms'])}, from the beginning", *bars.bars(rows)]
    if not found["exact"]:
        lines += ["", *_scaled(found)]
    return [*lines, *(f"not played: {one}" for one in found["left_out"])]


def _what(found: dict[str, Any]) -> list[str]:
    asked, limits = found["asked"], found["limits"]
    more = [
        f"{asked['failure_rate']:.2%} of the requests fail" if asked["failure_rate"] else "",
        f"429 beyond {asked['rate_limit_per_minute']:,} a minute" if asked["rate_limit_per_minute"] else "",
        f"Retry-After {words.span(asked['guidance_ms'])}" if asked["guidance_ms"] else "",
        f"no connection from {words.span(asked['outage']['start_ms'])} on for {words.span(asked['outage']['span_ms'])}"
        if asked["outage"]
        else "",
    ]
    when = {"spread": "evenly over", "burst": "all at once, of", "poisson": "at random over"}[asked["arrivals"]]
    return [
        f"{found['provider']}: {_operations(asked['operations'])} {when} {words.span(asked['duration_ms'])}; "
        f"jobs of {_job_time(asked['job_time'])}; seed {asked['seed']}",
        f"each with {limits['max_status_requests']:,} requests, {limits['max_transport_failures']:,} failures, "
        f"{limits['max_rate_limited']:,} rate-limit answers, {words.span(limits['deadline_ms'])} until its deadline",
        *(["; ".join(one for one in more if one)] if any(more) else []),
    ]


def _operations(count: int) -> str:
    return f"{count:,} operation{'' if count == 1 else 's'}"


def _job_time(time: dict[str, Any]) -> str:
    match time["shape"]:
        case "uniform":
            return f"{words.span(time['low_ms'])} to {words.span(time['high_ms'])}"
        case "lognormal":
            return f"{words.span(time['median_ms'])} in the middle, spread {time['spread']:g}"
        case _:
            return words.span(time["ms"])


def _rows(planned: dict[str, Any], fixed: dict[str, Any]) -> list[tuple[str, ...]]:
    both = (planned, fixed)
    return [
        ("requests", *(_count(one["requests"]) for one in both)),
        ("requests an operation", *(_each(one) for one in both)),
        ("in the busiest second", *(_count(one["per_second"]) for one in both)),
        ("in the busiest minute", *(_count(one["per_minute"]) for one in both)),
        ("jobs whose end was seen", *(_count(one["seen"]) for one in both)),
        *(
            (f"seen so late, {name}", *(_late(one["lateness_ms"][key]) for one in both))
            for name, key in (("median", "median"), ("95 % within", "p95"), ("longest", "longest"))
        ),
    ]


def _each(load: dict[str, Any]) -> str:
    return (
        f"{load['requests_per_operation']['value']:,.2f} "
        f"(median {load['median_requests']:,}, most {load['most_requests']:,})"
    )


def _count(found: dict[str, Any] | None) -> str:
    """`1,234`, scaled `1,234 (1,200 to 1,270)`."""
    if found is None:
        return words.NOTHING
    value, low, high = found["value"], found["low"], found["high"]
    return f"{value:,}" if low == value == high else f"{value:,} ({low:,} to {'?' if high is None else f'{high:,}'})"


def _late(found: dict[str, Any] | None) -> str:
    if found is None:
        return words.NOTHING
    value, low, high = found["value"], found["low"], found["high"]
    if low == value == high:
        return words.span(value)
    return f"{words.span(value)} ({words.span(low)} to {'?' if high is None else words.span(high)})"


def _questions(found: dict[str, Any]) -> list[str]:
    asked = found["escalations"]
    if not asked:
        return ["no operation would stop and ask"]
    total = found["asked"]["operations"]
    rows = [(one["reason"], _count(one), f"{one['value'] / total:.2%}") for one in asked]
    return words.table(("WOULD STOP AND ASK", "OPERATIONS", "SHARE"), rows).split("\n")


def _scaled(found: dict[str, Any]) -> list[str]:
    lines = [
        f"scaled from {_operations(found['simulated'])}; in brackets {found['confidence']:.0%} intervals; "
        "peaks are rates over the window that --json names"
    ]
    if found["shared"]:
        lines.append(
            "failures, outages and limits are shared by all operations: the intervals say how much the sample varies, "
            "not what more operations do to each other"
        )
    return lines


def _label(at: int, part: int) -> str:
    """`0 d 06:00`; seconds where the parts are shorter than a minute, days alone where they are whole days."""
    days, rest = divmod(at, DAY)
    if part % DAY == 0:
        return f"day {days:,}"
    hours, minutes = rest // HOUR, rest % HOUR // MINUTE
    seconds = f":{at % MINUTE // 1_000:02}" if part < MINUTE else ""
    return f"{days} d {hours:02}:{minutes:02}{seconds}"
