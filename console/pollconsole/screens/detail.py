"""One operation whole: every budget, both facts, contract, account, and its story, live.

Job: draw the record. Must not know: decisions; it offers none.

Source: spec V1, V2, S1, E9.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import rows, times, words
from pollconsole.chart import chart_lines, instant_of
from pollconsole.draw import Line, Span, join, text
from pollconsole.screens.base import bound
from pollconsole.screens.searching import SearchingScreen
from pollconsole.screens.story import StoryView
from pollconsole.state import State
from pollconsole.widgets import LinesView, OneLine
from pollcore.facts import MINUTE, Instant, Moment, Operation, deadline_left

BAR: Final = 20
NAME: Final = 12
MAX_VALUE: Final = 300


class DetailScreen(SearchingScreen):
    """Budgets above, the story below."""

    CSS = """
    #facts { height: auto; max-height: 60%; padding: 0 1; }
    #story { height: 1fr; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "back"),
        bound("back", "leave"),
        bound("down", "scroll(1)"),
        bound("up", "scroll(-1)"),
        bound("page_down", "scroll(10)"),
        bound("page_up", "scroll(-10)"),
        bound("first", "ends(0)"),
        bound("last", "ends(1)"),
        bound("question", "question"),
        bound("copy_id", "copy_id"),
        bound("copy_detail", "copy_detail"),
    ]

    searched = "the story"

    def __init__(self, state: State, operation_id: str, *, over_card: bool = False) -> None:
        super().__init__(state)
        self.operation_id = operation_id
        self._over_card = over_card
        self.below = not over_card

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield LinesView(self.state, id="facts", indent=NAME + 1)
        yield OneLine(self.state, id="rule")
        yield StoryView(self.state, id="story")
        yield OneLine(self.state, ground="footer", id="foot")

    def on_mount(self) -> None:
        self.tick(self.state.now(), True)

    def tick(self, now: Moment, changed: bool) -> None:  # noqa: ARG002
        operation = self.state.board.operations.get(self.operation_id)
        if operation is None:
            self.show_head(((" not in sight any more ", "muted"),), now)
            return
        asked = self.state.board.asked(operation)
        status = rows.status_span(operation, asked)
        title: Line = ((" ", "text"), text(operation.operation_id, "title", 60), ("  ", "text"), status)
        self.show_head(title, now)
        facts = self.query_one("#facts", LinesView)
        facts.wrap_for(self.app.size.width - 3)
        story = self.query_one(StoryView)
        facts.show([*self._facts(operation, now, asked), *chart_lines(story.events, NAME)])
        facts.styles.height = len(facts.lines)
        self._draw_rule()
        story.follow_operation(operation)
        self._draw_keys(asked, operation.status.is_end)

    def _facts(self, operation: Operation, now: Moment, asked: bool) -> list[Line]:
        events_seen = self.query_one(StoryView).events
        at = instant_of(events_seen[-1].get("at")) if events_seen else None
        last = None if at is None else Instant(at)
        did = self.state.done.get(self.operation_id)
        return fact_lines(operation, now, asked, did, last, exact=self.state.exact)

    def _draw_rule(self) -> None:
        """What is looked for and where it stands, or what was just said, else a rule."""
        rule = self.query_one("#rule", OneLine)
        sought, said = self.search_line(), self.said_line()
        if sought:
            rule.show(sought, said)
        elif said:
            rule.show(said)
        else:
            rule.show(((" story, UTC ", "faint"), ("-" * max(0, self.app.size.width - 14), "bar-empty")))

    def _draw_keys(self, asked: bool, ended: bool) -> None:
        if self.search_keys():
            return
        back = ("Esc", "back to the card" if self._over_card else "back")
        question: tuple[tuple[str, str], ...] = ()
        if not self._over_card and (asked or not ended):  # an open question stays reachable
            question = (("o", "open the question" if asked else "ask for a decision"),)
        self.keys(back, *question, ("j k", "story"), ("/", "search"), ("c C", "copy"), ("?", "help"))

    def go_to(self, needle: str, by: int) -> tuple[int, int]:
        return self.query_one(StoryView).search(needle, by)

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_copy_id(self) -> None:
        self._copy(self.operation_id, "the id")

    def action_copy_detail(self) -> None:
        """The record as it stands here, and the story."""
        operation = self.state.board.operations.get(self.operation_id)
        if operation is None:
            return
        facts = self._facts(operation, self.state.now(), self.state.board.asked(operation))
        story = "\n".join(self.query_one(StoryView).lines)
        self._copy(f"{self.operation_id}\n{join(facts)}\n{story}", f"the detail of {self.operation_id}")

    def _copy(self, copied: str, what: str) -> None:
        copier: Any = self.app.copy  # type: ignore[attr-defined]
        copier(copied, what)
        self.tick(self.state.now(), False)

    def action_leave(self) -> None:
        self.app.pop_screen()

    def action_scroll(self, by: int) -> None:
        self.query_one(StoryView).scroll_relative(y=by, animate=False)

    def action_ends(self, last: int) -> None:
        story = self.query_one(StoryView)
        if last:
            story.scroll_end(animate=False)
        else:
            story.scroll_home(animate=False)

    def action_question(self) -> None:
        if not self._over_card:
            opener: Any = self.app.opens  # type: ignore[attr-defined]
            opener("question", self.operation_id)


def fact_lines(
    operation: Operation,
    now: Moment,
    asked: bool,
    did: str | None = None,
    last: Instant | None = None,
    *,
    exact: bool = False,
) -> list[Line]:
    """The record as lines: budgets, the two facts side by side, who and where. *last*: of its last event, if known.
    *exact*: its times in full, too."""
    lines: list[Line] = []
    if did:
        lines.append(_pair("decided", (did, "good")))
    if operation.stop_reason is not None:
        lines.append(_pair("stopped", *_stop(operation, asked)))
    lines += _budgets(operation, now, last)
    lines += _two_facts(operation, now)
    lines += _origin(operation, now)
    if exact:
        lines += _times(operation)
    return lines


def _times(operation: Operation) -> list[Line]:
    """Every time of the record, UTC and local."""
    http = operation.last_http
    known: list[tuple[str, Instant | None]] = [
        ("submitted", operation.started_at),
        ("deadline", operation.deadline_at),
        ("useful until", operation.useful_until),
        ("expires", operation.provider_expires_at),
        ("next request", operation.next_poll_at),
        ("held until", operation.hold_until),
        ("answered", None if http is None else http.answered_at),
        ("no answer", operation.last_fault_at),
        ("state since", operation.memory.changed_at),
    ]
    return [_pair(name, (times.exactly(at), "text")) for name, at in known if at is not None]


def _pair(name: str, *spans: Span) -> Line:
    return ((f"{name:<{NAME}} ", "muted"), *spans)


def _stop(operation: Operation, asked: bool) -> tuple[Span, ...]:
    reason = operation.stop_reason.value if operation.stop_reason is not None else ""
    detail = f", {operation.stop_detail.value}" if operation.stop_detail is not None else ""
    said = f" ({operation.stop_explanation})" if operation.stop_explanation else ""
    return text(f"{reason}{detail}", "attention" if asked else "text"), text(said, "muted", MAX_VALUE)


def _budgets(operation: Operation, now: Moment, last: Instant | None) -> list[Line]:
    lines = [_time(operation, now, last)]
    for name, spent, allowed in (
        ("requests", operation.status_requests_used, operation.max_status_requests),
        ("failures", operation.transport_failures_used, operation.max_transport_failures),
        ("429 answers", operation.rate_limited_used, operation.max_rate_limited),
    ):
        role = rows.budget_span(spent, allowed)[1]
        lines.append(_pair(name, *rows.bar(spent, allowed, BAR), (f"  {spent} of {allowed}", role)))
    lines[1] = (*lines[1], *_next(operation, now))
    return lines


def _time(operation: Operation, now: Moment, last: Instant | None) -> Line:
    """What is used of the time; of an ended operation, how long it took until its last event."""
    whole = operation.deadline_at - operation.started_at
    deadline = (f"  deadline {times.short(operation.deadline_at, now.wall)}", "muted")
    if operation.status.is_end:
        took = max(0, (last or _last_known(operation)) - operation.started_at)
        said = f"  took {words.span(took)} of {words.span(whole)}"
        return _pair("time", *rows.bar(took, whole, BAR), (said, "text"), deadline)
    left = deadline_left(operation, now)
    used = max(0, whole - left)
    return _pair(
        "time",
        *rows.bar(used, whole, BAR),
        (f"  {words.span(min(used, whole))} of {words.span(whole)}", "text"),
        (f", {words.span(left)} left" if left > 0 else ", over", "text" if left > whole * 0.1 else "danger"),
        deadline,
    )


def _last_known(operation: Operation) -> Instant:
    """The newest time that the record itself has: where the story is not read."""
    http = operation.last_http
    known = (http.answered_at if http else None, operation.last_fault_at, operation.memory.changed_at)
    return max((at for at in known if at is not None), default=operation.started_at)


def _next(operation: Operation, now: Moment) -> tuple[Span, ...]:
    """When the next request goes out, and what said so."""
    shown, role = rows.next_span(operation, now)
    if shown == words.NOTHING:
        return (("  no request is due", "muted"),)
    if operation.hold_until is not None and role == "held":
        return ((f"  held until {words.clock(operation.hold_until, now.wall)}", "held"),)
    source = f", {rows.SOURCE_WORDS[operation.delay_source]}" if operation.delay_source is not None else ""
    return (("  next ", "muted"), (shown, role), (source, "muted"))


def _two_facts(operation: Operation, now: Moment) -> list[Line]:
    """S1: what HTTP said and what the job said, beside each other and apart."""
    http = operation.last_http
    request_id = f", request id {http.request_id}" if http is not None and http.request_id else ""
    memory = operation.memory
    since = f" since {words.clock(memory.changed_at, now.wall)}" if memory.changed_at is not None else ""
    progress = f", progress {memory.progress}" if memory.progress else ""
    state = operation.last_known_state
    return [
        _pair("HTTP says", (rows.http_words(operation, now), "text"), text(request_id, "muted", MAX_VALUE)),
        _pair(
            "job says",
            ("nothing yet", "faint") if state is None else text(state, "text", MAX_VALUE),
            text(f"{since}{progress}", "muted", MAX_VALUE),
        ),
    ]


def _origin(operation: Operation, now: Moment) -> list[Line]:
    given = operation.submitted
    lines = [
        _pair(
            "provider",
            text(given.provider, "text", 60),
            ("  account ", "muted"),
            text(given.account, "text", 80),
            ("  job ", "muted"),
            text(given.job_id, "text", 120),
        ),
        _pair(
            "contract",
            text(operation.contract_digest[:16], "text"),
            ("  credential ", "muted"),
            text(operation.credential or "none", "text", 60),
            (f"  extended {operation.extensions_used} times", "muted"),
        ),
    ]
    ends: list[tuple[str, Instant | None]] = [
        ("useful until ", operation.useful_until),
        ("provider expiry ", operation.provider_expires_at),
    ]
    who: tuple[Span, ...] = (
        (times.clock(operation.started_at, now.wall), "text"),
        text(f" by {_who(given.caller, given.os_user or 'unknown user')}", "muted", 100),
    )
    for name, at in ends:
        if at is not None:
            late = "danger" if at - now.wall < 5 * MINUTE else "text"
            who = (*who, (f"  {name}", "muted"), (words.clock(at, now.wall), late))
    lines.append(_pair("submitted", *who))
    if given.label:
        lines.append(_pair("label", text(given.label, "text", MAX_VALUE)))
    if operation.result is not None:
        sure = "" if operation.result.validated else ", not validated"
        kinds = f" ({', '.join(operation.result.qualifiers)})" if operation.result.qualifiers else ""
        lines.append(_pair("result", text(f"permits {operation.result.permits}{sure}{kinds}", "good", MAX_VALUE)))
    return lines


def _who(caller: str | None, os_user: str) -> str:
    return f"{caller} ({os_user})" if caller else os_user
