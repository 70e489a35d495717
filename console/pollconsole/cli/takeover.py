"""`handover`: what the next operator must know, on one page.

Job: ask for the document, print it. Must not know: where its facts come from. Texts of others are made harmless.
Source: spec V4, V5, O8, A4.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click

from pollconsole import bridge, due, words
from pollconsole.cli import calls, out
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.cli.liveness import since_words
from pollconsole.cli.upkeep import since_instant
from pollconsole.cli.values import When
from pollconsole.safe import safe
from pollcore.facts import HOUR, Instant

SHIFT_MS: Final = 12 * HOUR
"""Decisions of this time are told where no other is asked for."""
MAX_TEXT: Final = 200
_ANSWERS: Final = frozenset({"granted", "grant_refused", "rejected", "closed", "held", "hold_ended"})
"""Events that tell an answer to a card; their detail is the label of what was chosen."""
MAX_LINES: Final = 50
"""Of one section of the page; the document has more."""


@command(
    "handover",
    "pollconsole handover",
    "pollconsole handover --since 8h --json",
    short_help="What the next operator must know.",
)
@click.option("--since", type=When(), metavar="SPAN|TIME", help="Tell decisions since then [default: 12h].")
@pass_common
def handover(common: Common, since: tuple[int | None, Instant | None] | None) -> None:
    """Tell the next shift what is open, what was decided and by whom, and what ends soon.

    Open cards by cause, who granted and refused what, what ends within the hour, what is held or paused, live sessions,
    the head of the audit, and which core runs. Reads only; decides nothing.
    """

    async def body(core: bridge.Core) -> dict[str, Any]:
        begin = since_instant(since or (SHIFT_MS, None), core.clock.now().wall)
        return await bridge.handover(core, begin)

    view = calls.with_core(common, body)
    if common.json:
        out.document({"handover": view})
    else:
        out.text("\n".join(page(view)))


def page(view: dict[str, Any]) -> Iterator[str]:
    """The document as lines."""
    yield f"hand-over at {view['at']}"
    yield _core(view["core"])
    counts = ", ".join(f"{number:,} {status.replace('_', ' ')}" for status, number in view["operations"].items())
    yield f"operations: {counts or 'none'}"
    yield _audit(view["audit"])
    yield from _counted("open cards", view["open_cards_count"], view["open_cards"], _card)
    yield from _counted("ends within the hour", view["ends_soon_count"], view["ends_soon"], _ending)
    yield from _counted("held", view["held_count"], view["held"], _held)
    yield from _section("paused providers", view["paused"], _paused)
    yield from _section("live sessions", view["sessions"], _session)
    head = f"decided since {view['since']}"
    if view["decided_more"]:
        head += f" (the newest; {view['decided_more']:,} more: 'pollconsole audit show --decided')"
    yield from _section(head, view["decided"], _decided, newest=True)
    yield ""
    yield "Cards are answered in the console: 'pollconsole', keys E and A."


def _counted(head: str, count: int, rows: list[dict[str, Any]], line: Any) -> Iterator[str]:
    """A section that says how many there are, of which *rows* may be the first ones."""
    yield from _section(f"{head} ({count:,})", rows, line, count=count)


def _section(
    head: str, rows: list[dict[str, Any]], line: Any, *, newest: bool = False, count: int | None = None
) -> Iterator[str]:
    """*count*: how many there are, where *rows* may be fewer; lines and what is left out add up to it."""
    yield ""
    yield f"{head}:" if rows else f"{head}: none"
    shown = rows[-MAX_LINES:] if newest else rows[:MAX_LINES]
    yield from (f"  {line(row)}" for row in shown)
    left = max(len(rows), count or 0) - len(shown)
    if left:
        where = f" (--json has {len(rows):,})" if count is not None and count > len(rows) else " (--json)"
        yield f"  and {left:,} {'earlier' if newest else 'more'}{where}"


def _safe(text: Any) -> str:
    return safe(str(text), MAX_TEXT)


def _whose(row: dict[str, Any]) -> str:
    label = f" ({_safe(row['label'])})" if row.get("label") else ""
    return f"{_safe(row['operation_id'])}{label}, {_safe(row['provider'])}"


def _core(core: dict[str, Any]) -> str:
    if core["runs"]:
        each = [f"{one['kind']} {one['pid']}@{_safe(one['host'])} since {one['started_at']}" for one in core["running"]]
        return f"core: {', '.join(each)}"
    if core["silent_ms"] is None:
        silent = "none has run on this home"
    else:
        ago = since_words(core["silent_ms"])
        silent = "none runs" if ago is None else f"none runs, last {ago} ago"
    return f"core: {silent}: nothing is polled"


def _audit(audit: dict[str, Any]) -> str:
    if audit["alarm"]:
        return f"audit: DAMAGED: {audit['alarm']}"
    if not audit["begun"]:
        return f"audit: {_safe(audit['why'] or 'no chain has begun')}"
    how = "anchored" if audit["anchored"] else f"NOT ANCHORED: {_safe(audit['why'])}"
    return f"audit: {audit['links']:,} links, head {audit['head'][:16]}, {how}"


def _card(row: dict[str, Any]) -> str:
    what = f"{row['reason']}" + (f" ({row['detail']})" if row["detail"] else "")
    whose = f"credential {_safe(row['credential'])}" if row["operation_id"] is None else _whose(row)
    many = f", {row['count']:,} operations of one cause, the oldest" if row["count"] > 1 else ""
    expires = f", expires {row['expires_at']}" if row["expires_at"] else ""
    ends = ""
    if row["ends_at"]:
        of_many = "the last " if row["passed"] else "the next "
        which = of_many if row["count"] > 1 else ""
        ends = f", {which}{due.PASSED if row['passed'] else 'ends'} {row['ends_at']}"
    unseen = "" if row["seen"] else ", not seen yet"
    return f"{what}{many}: {whose}; asked {words.span(row['waiting_ms'])} ago{ends}{expires}{unseen}"


def _ending(row: dict[str, Any]) -> str:
    time = words.span(row["left_ms"]) if row["left_ms"] > 0 else f"time {due.PASSED}"
    left = f"{time} and {row['requests_left']} requests left"
    return f"{_whose(row)}: {row['status']}, {left}, deadline {row['deadline_at']}"


def _held(row: dict[str, Any]) -> str:
    return f"{_whose(row)}: until {row['hold_until'] or words.NOTHING}"


def _paused(row: dict[str, Any]) -> str:
    whom = _safe(row["provider"]) + (f", account {_safe(row['account'])}" if row["account"] else "")
    return f"{whom}: until {row['until']}" + (f", by {_safe(row['by'])}" if row["by"] else "")


def _session(row: dict[str, Any]) -> str:
    left = f"{row['calls_left']} of {row['calls']} calls left"
    return f"{_safe(row['credential'])} for {_safe(row['run'])}: until {row['until']}, {left}"


def _what(row: dict[str, Any]) -> str:
    """`granted force-cancel at provider`: of an answer to a card its choice's label, which tells more than its kind."""
    event, decision = str(row["event"]).replace("_", " "), str(row["decision"] or "").replace("_", " ")
    detail = _safe(row["detail"]) if row["detail"] else ""
    if row["event"] in _ANSWERS and detail:
        return event if event.startswith(detail) else f"{event} {detail}"
    return " ".join([event, *([decision] if decision else []), *([f"({detail})"] if detail else [])])


def _decided(row: dict[str, Any]) -> str:
    who = row["operator"] or row["caller"]
    parts = [_what(row)]
    parts += [_safe(row["operation_id"])] if row["operation_id"] else []
    parts += [f"by {_safe(who)}"] if who else []
    because = f": {_safe(row['text'])}" if row["text"] else ""
    return f"{row['at']} {', '.join(parts)}{because}"
