"""The rows of the approvals queue: who asks for what, which request it is, how long it still stands.

Job: one row a cause, ordered by the time left; one sentence for each kind. Must not know: choices, decisions, how a
request is rendered (it comes ready, harmless and masked).

Source: spec G7, G8, E10.
"""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len

from pollconsole import rows, words
from pollconsole.bridge import AskedFor
from pollconsole.causes import Cause
from pollconsole.draw import Line, fit, text
from pollconsole.screens.cause_words import WHOLE_FROM, who, why
from pollconsole.state import State
from pollconsole.widgets import Table
from pollcore.facts import Instant, StopReason

WHO: Final = 24
"""The most; an id that we made takes 15 and is shown whole."""
NUMBER: Final = 6
WAITS: Final = 6
EXPIRES: Final = 7
ENDS: Final = 6
ENDS_FROM: Final = 100
"""From this width on the end of the wait has a column."""
LEAD: Final = 2
_ASKS_BY_ITSELF: Final = frozenset({StopReason.MODE_CHANGE})

ABOUT: Final[dict[StopReason, str]] = {
    StopReason.CALL_APPROVAL: "One request waits for leave; unanswered it is asked anew, which is no denial.",
    StopReason.SESSION_APPROVAL: "Asked once for a run: so many minutes and calls, for all its operations.",
    StopReason.FIRST_USE: "Is asking under this contract read-only, or does it act? Decided once.",
    StopReason.MODE_CHANGE: "Somebody wants a credential to be asked about less often; nothing waits for it.",
}
"""What each kind means, for whoever is woken by it."""


class ApprovalsTable(Table):
    """Causes, those that expire soonest first."""

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self.causes: dict[str, Cause] = {}
        self.asked: dict[str, AskedFor] = {}
        """By question: what it is about, as far as it was read."""
        self._who = 3
        self._why = (3, 3)
        """Cells of the reasons: by their full names, and in short."""

    def put(self, causes: dict[str, Cause]) -> None:
        """These rows from now on, in this order."""
        self.causes = causes
        self._who = max(3, min(WHO, max((cell_len(who(row)) for row in causes.values()), default=0)))
        rows_ = causes.values()
        whole, short = (max((cell_len(why(row, short=each)) for row in rows_), default=3) for each in (False, True))
        self._why = whole, short
        self.refresh()
        self.show_ids(list(causes))

    @property
    def widths(self) -> dict[str, int]:
        """Cells of each column by its head, in their order; what is left has the request."""
        ends = {"ENDS": ENDS} if self.columns >= ENDS_FROM else {}
        rest = {"REQ": NUMBER, "WAITS": WAITS, "EXPIRES": EXPIRES, **ends}
        why_ = max(4, self._why[self.columns < WHOLE_FROM])
        used = LEAD + self._who + why_ + sum(rest.values()) + len(rest) + 2
        return {"WHO": self._who, "ASKS": why_, "FOR": max(0, self.columns - used), **rest}

    @property
    def heads(self) -> str:
        """The line over the rows."""
        right = ("REQ", "WAITS", "EXPIRES", "ENDS")
        return " ".join(fit(head, width, right=head in right) for head, width in self.widths.items())

    def line_of(self, operation_id: str) -> Line:
        mark = ("> ", "key") if operation_id == self.cursor_id else ("  ", "text")
        row = self.causes.get(operation_id)
        if row is None:
            return (mark, text(operation_id, "faint"))
        now = self.state.now().wall
        width = self.widths
        found = self.asked.get(row.questions[0].escalation_id)
        line: Line = (
            mark,
            (fit(who(row), width["WHO"]), "text"),
            (" ", "text"),
            (fit(why(row, short=self.columns < WHOLE_FROM), width["ASKS"]), "attention"),
            (" ", "text"),
            (fit(_short(text(what(row, found))[0]), width["FOR"]), "text"),
            (" ", "text"),
            (fit(_number(found), width["REQ"], right=True), "muted"),
            (" ", "text"),
            (fit(rows.short_countdown(max(0, now - row.oldest_at)), WAITS, right=True), "muted"),
            (" ", "text"),
            (fit(expires(row.expires_at, now), EXPIRES, right=True), _hurry(row.expires_at, now)),
        )
        if "ENDS" in width:
            line = (*line, (" ", "text"), (fit(_ends(row.ends_at, now), ENDS, right=True), "muted"))
        return line

    def unread(self) -> list[tuple[str, str]]:
        """Questions in sight of which it is not known yet what they are about, with their operations."""
        top = self.scroll_offset.y
        shown = self.ids[top : top + max(1, self.size.height)]
        asked = [self.causes[each].questions[0] for each in shown if each in self.causes]
        return [
            (q.escalation_id, q.operation_id)
            for q in asked
            if q.operation_id and q.reason not in _ASKS_BY_ITSELF and q.escalation_id not in self.asked
        ]


def what(row: Cause, asked: AskedFor | None) -> str:
    """What is asked for: the request, the session, the looser mode."""
    question = row.questions[0]
    if question.reason is StopReason.MODE_CHANGE:
        return question.detail or ""
    if asked is None:
        return "..."
    if question.reason is StopReason.SESSION_APPROVAL:
        return f"{asked.credential}: {asked.size.removeprefix('approve session, ')}"
    return asked.problem or asked.request


def _short(said: str) -> str:
    """An address in a column: without its scheme, a masked query as `?...`."""
    return said.replace("https://", "").replace("http://", "").replace(" (its query is masked)", "?...")


def expires(at: Instant | None, now: Instant) -> str:
    """Counts down; a question that does not expire has none."""
    if at is None:
        return words.NOTHING
    return "over" if at <= now else rows.countdown(at - now)


def _hurry(at: Instant | None, now: Instant) -> str:
    return "faint" if at is None else "danger" if at - now < 30_000 else "attention"


def _ends(at: Instant | None, now: Instant) -> str:
    if at is None:
        return words.NOTHING
    return "passed" if at <= now else rows.short_countdown(at - now)


def _number(asked: AskedFor | None) -> str:
    """`3/12`."""
    return asked.number.replace(" of ", "/") if asked is not None and asked.number else words.NOTHING
