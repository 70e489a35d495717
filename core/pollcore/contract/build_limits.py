"""Tables `schedule`, `hints`, `expiry`, `long_poll`, `settle`, `limits`, `caps`: time and budgets.

Job: TOML -> Policy and the readers of times, all in ms. Must not know: answers, requests.
"""

from __future__ import annotations

from typing import Final

import msgspec

from pollcore.contract.build_states import expression, statuses
from pollcore.contract.parts import Expiry, Hint, Unit
from pollcore.contract.placeholders import written
from pollcore.contract.tables import Table, span_text
from pollcore.facts import (
    DAY,
    HOUR,
    MAX_EXTEND_SIZES,
    MAX_FAILURES,
    MAX_REQUESTS,
    MAX_SPAN,
    MINUTE,
    SECOND,
    Cancel,
    Confirm,
    ExtendSize,
    ForceCancel,
    Limits,
    RateScope,
    Schedule,
)

MAX_HINTS: Final = 20
MAX_SCOPES: Final = 8
MAX_SCOPED: Final = 1_000_000
"""Requests that one rate limit may allow."""
SCOPES: Final = ("provider", "account", "credential", "route")
MAX_MINUTES: Final = MAX_SPAN // MINUTE
MODES: Final = ("standing", "per_session", "per_call")
LONG_POLL_MARGIN: Final = 10 * SECOND
"""A client waits so much longer than the provider was asked to hold the answer."""


def build_schedule(root: Table, settle_delay: int | None) -> Schedule:
    """Read `[schedule]` (T1, T2, T7, T10)."""
    table = root.table("schedule") or Table(root.document, (*root.path, "schedule"), {})
    plain = Schedule()
    base = table.span("base_delay", least=100, most=DAY) or plain.base_delay
    longest = table.span("max_delay", least=100, most=7 * DAY) or max(plain.max_delay, base)
    if longest < base:
        table.fail("max_delay", f"{span_text(longest)} is below base_delay {span_text(base)}")
    schedule = Schedule(
        base_delay=base,
        max_delay=longest,
        min_delay=table.span("min_delay", least=0, most=DAY),
        first_delay=table.span("first_delay", least=0, most=7 * DAY),
        expected_duration=table.span("expected_duration"),
        rate_limit_factor=table.number("rate_limit_factor", least=1, most=100) or plain.rate_limit_factor,
        rate_limit_max_delay=table.span("rate_limit_max_delay", least=100, most=7 * DAY),
        max_hint=table.span("max_hint", least=SECOND, most=30 * DAY) or plain.max_hint,
        max_interval=table.span("max_interval", least=SECOND),
        guidance_spread=_or(table.number("guidance_spread", least=0, most=1), plain.guidance_spread),
        settle_delay=settle_delay,
    )
    if schedule.min_delay is not None and schedule.min_delay > longest:
        table.fail("min_delay", f"is above max_delay {span_text(longest)}")
    table.finish()
    return schedule


def _or(value: float | None, default: float) -> float:
    return default if value is None else value


def build_settle(root: Table) -> int | None:
    """Read `[settle]` (X8): after which delay an end is confirmed by a second answer; None: the first one counts."""
    table = root.table("settle")
    if table is None:
        return None
    delay = table.span("delay", least=SECOND, most=HOUR)
    if delay is None:
        table.fail("delay", 'missing; give a span like "10s"')
    table.finish()
    return delay


def build_hints(root: Table) -> tuple[Hint, ...]:
    """Read `[[hints]]` (R25, T3)."""
    tables = root.tables("hints")
    if len(tables) > MAX_HINTS:
        root.fail("hints", f"more than {MAX_HINTS} hints")
    found = []
    for table in tables:
        path = expression(table, "path")
        if path is None:
            table.fail("path", """missing; as "body.next_check_at" or 'http.headers."retry-after-ms"'""")
        unit = Unit(_unit(table))
        name = table.text("name", max_length=64) or path.source[:64]
        found.append(
            Hint(
                name=name,
                path=path,
                unit=unit,
                when=expression(table, "when"),
                cap=table.span("cap", least=SECOND, most=30 * DAY),
            )
        )
        table.finish()
    return tuple(found)


def _unit(table: Table) -> str:
    if "unit" not in table:
        table.raw("unit")
        table.fail("unit", f"missing; one of {', '.join(Unit)}")
    return table.choice("unit", list(Unit), "")


def build_expiries(root: Table) -> tuple[Expiry, ...]:
    """Read `[[expiry]]` (R30, S5)."""
    found = []
    for table in root.tables("expiry"):
        path = expression(table, "path")
        if path is None:
            table.fail("path", "missing; give the field")
        found.append(
            Expiry(
                path=path,
                unit=Unit(_unit(table)),
                of=table.choice("of", ("job", "result"), "job"),
                anchor=expression(table, "anchor"),
            )
        )
        table.finish()
    return tuple(found)


def build_long_poll(root: Table) -> tuple[str | None, str, int, frozenset[int]]:
    """Read `[long_poll]` (T10): (query parameter, its text, ms that the provider holds, timeout statuses)."""
    table = root.table("long_poll")
    if table is None:
        return None, "", 0, frozenset()
    name = table.required_text("parameter", "the query parameter's name", max_length=64)
    held = table.span("wait", least=SECOND, most=10 * MINUTE)
    if held is None:
        table.fail("wait", 'missing; give a span like "20s"')
    most = table.span("max", least=SECOND, most=10 * MINUTE)
    if most is not None and held > most:
        table.fail("wait", f"{span_text(held)} is above the provider's maximum {span_text(most)}")
    unit = table.choice("unit", ("seconds", "milliseconds", "span"), "seconds")
    text = {"seconds": f"{-(-held // SECOND)}", "milliseconds": f"{held}", "span": f"{-(-held // SECOND)}s"}[unit]
    codes = statuses(table, "timeout_statuses") or frozenset()
    table.finish()
    return name, text, held, codes


class LimitParts:
    """What `[limits]` holds."""

    def __init__(self, root: Table) -> None:
        """Raises ContractError."""
        table = root.table("limits")
        if table is None:
            root.fail(None, "limits: missing; a contract says how long and how often may be asked, and why")
        self.deadline_basis = table.required_text(
            "deadline_basis", "what the deadline rests on: cost of delay, retention, decide-by"
        )
        self.retention = table.span("retention", least=MINUTE)
        self.retention_note = table.text("retention_note")
        self.extend = tuple(_size(inner) for inner in table.tables("extend"))
        if len(self.extend) > MAX_EXTEND_SIZES:
            table.fail("extend", f"more than {MAX_EXTEND_SIZES} sizes")
        if len({(size.minutes, size.checks) for size in self.extend}) < len(self.extend):
            table.fail("extend", "lists a size twice")
        self.max_extensions = _whole(table, "max_extensions", 0, 100, 3)
        self.hold = table.span("hold", least=MINUTE, most=DAY) or 30 * MINUTE
        self.max_holds = _whole(table, "max_holds", 0, 100, 3)
        self.default = _limits(table.table("default"))
        self.ceiling = _limits(table.table("max"))
        table.finish()
        self._check(table)

    def _check(self, table: Table) -> None:
        for field in Limits.__struct_fields__:
            low, high = getattr(self.default, field), getattr(self.ceiling, field)
            if low is not None and high is not None and low > high:
                texts = [span_text(value) if field == "deadline" else str(value) for value in (low, high)]
                table.fail("default", f"{field} {texts[0]} is above limits.max.{field} {texts[1]}")
        for name, limits in (("default", self.default), ("max", self.ceiling)):
            if self.retention and limits.deadline and limits.deadline > self.retention:
                table.fail(
                    name,
                    f"deadline {span_text(limits.deadline)} is beyond the provider's retention "
                    f"{span_text(self.retention)}; the job would be forgotten before we stop",
                )


def _limits(table: Table | None) -> Limits:
    if table is None:
        return Limits()
    limits = Limits(
        deadline=table.span("deadline", least=SECOND),
        max_status_requests=table.whole("max_status_requests", least=1, most=MAX_REQUESTS),
        max_transport_failures=table.whole("max_transport_failures", least=1, most=MAX_FAILURES),
        max_rate_limited=table.whole("max_rate_limited", least=1, most=MAX_FAILURES),
    )
    table.finish()
    return limits


def _size(table: Table) -> ExtendSize:
    size = ExtendSize(
        minutes=table.required_whole("minutes", least=1, most=MAX_MINUTES),
        checks=table.required_whole("checks", least=1, most=MAX_REQUESTS),
        transport_failures=_whole(table, "transport_failures", 0, MAX_FAILURES, 1),
        rate_limited=_whole(table, "rate_limited", 0, MAX_FAILURES, 1),
    )
    table.finish()
    return size


def _whole(table: Table, key: str, least: int, most: int, default: int) -> int:
    value = table.whole(key, least=least, most=most)
    return default if value is None else value


def build_cancel_policy(table: Table) -> Cancel | None:
    """What the card says of a cancel (E5, E8); None without consequences, or with those that a new file holds in their
    place: then it is not offered."""
    consequences = written(table.text("consequences"))
    confirm = table.table("confirm")
    states = table.texts("allowed_states")
    irreversible, best_effort = table.flag("irreversible"), table.flag("best_effort")
    if confirm is None:
        table.fail(
            "confirm", "missing; give { minutes = 5, checks = 4 }: a cancel that was sent is not a cancelled job"
        )
    numbers = Confirm(
        minutes=confirm.required_whole("minutes", least=1, most=MAX_MINUTES),
        checks=confirm.required_whole("checks", least=1, most=MAX_REQUESTS),
    )
    confirm.finish()
    if consequences is None:
        return None
    return Cancel(
        consequences=consequences,
        confirm=numbers,
        irreversible=irreversible,
        best_effort=best_effort,
        allowed_states=states or None,
    )


def build_force_policy(table: Table) -> ForceCancel | None:
    """What the card says of the stronger cancel, and from when on it may be offered (R35); None as above."""
    table.required_text("consequences", "what it does beyond the ordinary cancel: an operator reads it before granting")
    said = build_cancel_policy(table)
    after, needs_accepted = table.span("after", least=SECOND), table.flag("needs_accepted")
    if said is None:
        return None
    return ForceCancel(
        **msgspec.structs.asdict(said),
        after=after,
        names_time="available_at" in table,
        needs_accepted=needs_accepted,
    )


def build_caps(root: Table) -> tuple[int | None, int | None, tuple[RateScope, ...]]:
    """Read `[caps]` (T8, R38): (concurrency, requests a minute, further limits by scope) for this provider."""
    table = root.table("caps")
    if table is None:
        return None, None, ()
    concurrency = table.whole("concurrency", least=1, most=1_000)
    per_minute = table.whole("per_minute", least=1, most=60_000)
    scopes = tuple(_scope(inner) for inner in table.tables("scopes"))
    if len(scopes) > MAX_SCOPES:
        table.fail("scopes", f"more than {MAX_SCOPES} scopes")
    table.finish()
    return concurrency, per_minute, scopes


def _scope(table: Table) -> RateScope:
    if "scope" not in table:
        table.raw("scope")
        table.fail("scope", f"missing; one of {', '.join(SCOPES)}")
    scope = table.choice("scope", SCOPES, "")
    requests = table.required_whole("requests", least=1, most=MAX_SCOPED)
    per = table.span("per", least=SECOND, most=DAY)
    if per is None:
        table.fail("per", 'missing; give a span like "1m" or "1h"')
    step = table.text("step", max_length=40)
    if step is not None and scope != "route":
        table.fail("step", 'belongs to scope = "route"')
    table.finish()
    return RateScope(scope, requests, per, step)
