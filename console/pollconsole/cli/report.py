"""`report`: were waits bounded, permitted, obedient and cheap; and what does not add up.

Job: arguments, figures for people, the document. Must not know: how figures are computed.
"""

from __future__ import annotations

from typing import Any, Final

import click

from pollconsole import bars, bridge, words
from pollconsole.bridge.reports import report as figures
from pollconsole.bridge.reports import report_one
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.upkeep import DEFAULT_SINCE_MS, since_instant
from pollconsole.cli.values import OperationId, When
from pollconsole.safe import safe
from pollcore.facts import HOUR, Instant, Refused

SHOWN: Final = 20
"""Contradictions and extensions that people are shown; `--json` has up to 1,000."""
MAX_TEXT: Final = 400


@command(
    "report",
    "pollconsole report",
    "pollconsole report --since 30d --chart",
    "pollconsole report op-1f2e3d4c --json",
    short_help="Figures: were waits bounded, was guidance obeyed.",
)
@click.argument("op", type=OperationId(), required=False)
@click.option("--since", type=When(), metavar="SPAN|TIME", help="Submitted from when on [default: 7d].")
@click.option("--chart", is_flag=True, help="Also requests and questions by the hour or day.")
@pass_common
def report(common: Common, op: str | None, since: tuple[int | None, Instant | None] | None, chart: bool) -> None:
    """Compute figures from the records, or go through the requests of one operation.

    Waits that ended or became a bounded question, requests permitted, guidance obeyed, requests spent against a loop
    that asks every 10 seconds, time to decision (median and 95th percentile), by provider and by reason; who extended
    what; and contradictions: what the last state, the counters, the deadline or the order of events do not bear out.
    """
    if op is not None and (since is not None or chart):
        raise Refused("--since and --chart belong to the report over all operations", code="usage")

    async def body(core: bridge.Core) -> dict[str, Any]:
        now = core.clock.now().wall
        if op is not None:
            return await report_one(core, op, now)
        return await figures(core, since_instant(since or (DEFAULT_SINCE_MS, None), now), now)

    found = calls.with_core(common, body)
    if common.json:
        out.document(found)
    else:
        out.text("\n".join(_one(found) if op is not None else _all(found, chart=chart)))


def _all(found: dict[str, Any], *, chart: bool) -> list[str]:
    settled = found["ended"] + found["escalated"] + found["overdue"]
    lines = [
        f"from {found['since']} to {found['until']}",
        f"operations: {found['operations']:,}; {found['ended']:,} ended, {found['escalated']:,} wait for a decision, "
        f"{found['within_limits']:,} within their limits, {found['overdue']:,} overdue",
        f"ended or bounded: {_share(found['share_ended_or_escalated'])} of {settled:,}",
        f"guidance obeyed: {_share(found['share_guidance_obeyed'])} of {found['guidance_given']:,}{_unprovable(found)}",
        f"requests: {found['requests_sent']:,} sent; a request every 10 s would have been "
        f"{found['fixed_interval_requests']:,}",
        f"counted for each operation: {found['requests']:,}, "
        f"{found['requests_permitted']:,} of them permitted when sent",
        f"decisions: {found['decisions']:,}; {_times(found, 'median_time_to_decision_ms', 'p95_time_to_decision_ms')}; "
        f"{found['open_questions']:,} open, the oldest for {words.span(found['oldest_open_question_ms'])}",
    ]
    if found["by_provider"]:
        lines += ["", *_providers(found["by_provider"])]
    if found["by_reason"]:
        lines += ["", *_reasons(found["by_reason"])]
    if chart:
        lines += _charts(found)
    if found["more"]:
        lines.append(f"only the newest {found['operations']:,} operations were looked at")
    return [*lines, *_findings(found, found["contradiction_count"])]


def _unprovable(found: dict[str, Any]) -> str:
    """Of guidance that nobody can judge: it is no contradiction, and not counted as obeyed."""
    number = found["guidance_unprovable"]
    return f"; {number:,} more not provable, the clock was stepped" if number else ""


def _guidance(fact: dict[str, Any]) -> str:
    if fact["guided_until"] is None:
        return words.NOTHING
    return {None: "not provable", True: "obeyed", False: "NOT OBEYED"}[fact["obeyed"]]


def _one(found: dict[str, Any]) -> list[str]:
    head = ("N", "SENT", "PERMITTED", "GUIDANCE", "ANSWER", "DECIDED")
    rows = [
        (
            words.NOTHING if fact["n"] is None else str(fact["n"]),
            fact["sent_at"],
            "yes" if fact["permitted"] else "NO",
            _guidance(fact),
            fact["answer"] or "none",
            fact["decided"] or words.NOTHING,
        )
        for fact in found["requests"]
    ]
    lines = [
        f"{found['operation_id']}: {found['status']}, "
        f"{words.counted(found['status_requests_used'], 'request')} counted, deadline {found['deadline_at']}",
        f"a request every 10 s would have been {found['fixed_interval_requests']:,}",
    ]
    lines += ["", words.table(head, rows)] if rows else ["no request is in its story"]
    return [*lines, *_findings(found, len(found["contradictions"]))]


def _providers(found: list[dict[str, Any]]) -> list[str]:
    head = (
        "PROVIDER",
        "OPERATIONS",
        "ENDED OR BOUNDED",
        "GUIDANCE",
        "SENT",
        "EVERY 10 S",
        "MEDIAN",
        "P95",
        "WRONG",
    )
    rows = [
        (
            one["provider"],
            f"{one['operations']:,}",
            _share(one["share_ended_or_escalated"]),
            _share(one["share_guidance_obeyed"]),
            f"{one['requests_sent']:,}",
            f"{one['fixed_interval_requests']:,}",
            words.span(one["times"]["median_ms"]),
            words.span(one["times"]["p95_ms"]),
            f"{one['contradictions']:,}",
        )
        for one in found
    ]
    return words.table(head, rows).split("\n")


def _reasons(found: list[dict[str, Any]]) -> list[str]:
    head = ("REASON", "QUESTIONS", "OPEN", "DECIDED", "MEDIAN", "P95", "LONGEST")
    rows = [
        (
            one["reason"],
            f"{one['questions']:,}",
            f"{one['open']:,}",
            f"{one['times']['decisions']:,}",
            words.span(one["times"]["median_ms"]),
            words.span(one["times"]["p95_ms"]),
            words.span(one["times"]["longest_ms"]),
        )
        for one in found
    ]
    return words.table(head, rows).split("\n")


def _charts(found: dict[str, Any]) -> list[str]:
    hourly = found["bucket_ms"] <= HOUR
    lines: list[str] = []
    for name in ("requests", "questions"):
        rows = [(_label(one["at"], hourly=hourly), one[name]) for one in found["by_time"]]
        drawn = bars.bars(rows)
        lines += ["", f"{name} by the {'hour' if hourly else 'day'}", *(drawn or ["none"])]
    return lines


def _label(at: str, *, hourly: bool) -> str:
    """`03-02 10:00` of an ISO time, or its date."""
    return f"{at[5:10]} {at[11:16]}" if hourly else at[:10]


def _findings(found: dict[str, Any], count: int) -> list[str]:
    lines = [""] if found["extensions"] or count else []
    for one in found["extensions"][:SHOWN]:
        told = f"{one['at']} {one['operation_id']}: {one['what']} by {one['operator']}"
        lines.append(f"extended: {safe(told, MAX_TEXT)}")
    if len(found["extensions"]) > SHOWN:
        lines.append("... more extensions; --json lists up to 1,000")
    for one in found["contradictions"][:SHOWN]:
        told = f"{one['at']} {one['operation_id']}: {one['text']}"
        lines.append(f"contradiction: {safe(told, MAX_TEXT)}")
    if count > SHOWN:
        lines.append(f"... {count:,} contradictions in all; --json lists up to 1,000")
    return [*lines, *([] if count else ["no contradictions"])]


def _share(value: float | None) -> str:
    return words.NOTHING if value is None else f"{value:.1%}"


def _times(found: dict[str, Any], median: str, p95: str) -> str:
    return f"median {words.span(found[median])}, 95 % within {words.span(found[p95])}"
