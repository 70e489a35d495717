"""The rows of the approvals queue: who asks for what, which request it is, how long it still stands.

Job: one row a cause, in the order of its queue; one sentence for each kind. Must not know: choices, decisions, how a
request is rendered (it comes ready, harmless and masked).

Source: spec G7, G8, E10.
"""

from __future__ import annotations

from typing import Final

from rich.cells import cell_len

from pollconsole import rows, times, words
from pollconsole.bridge import AskedFor
from pollconsole.causes import Cause
from pollconsole.draw import Line, cut_front, fit, text
from pollconsole.due import PASSED
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
FOR_LEAST: Final = 24
"""With fewer cells for the request, columns that say less give way to it."""
RIGHT: Final = frozenset({"REQ", "WAITS", "EXPIRES", "ENDS"})
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
    """Causes, what expires or ends soonest first."""

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
        why_ = max(4, self._why[self.columns < WHOLE_FROM])
        first, rest = LEAD + self._who + why_ + 2, {"REQ": NUMBER, "WAITS": WAITS, "EXPIRES": EXPIRES, **ends}
        for head in ("REQ", "WAITS"):  # less than which request it is, and when it expires
            if self.columns - first - sum(rest.values()) - len(rest) < FOR_LEAST:
                del rest[head]
        left = self.columns - first - sum(rest.values()) - len(rest)
        asked = {"FOR": left} if left >= FOR_LEAST // 2 else {}
        return {"WHO": self._who, "ASKS": why_ if asked else max(0, why_ + 1 + left), **asked, **rest}

    @property
    def heads(self) -> str:
        """The line over the rows."""
        return " ".join(fit(head, width, right=head in RIGHT) for head, width in self.widths.items())

    def line_of(self, operation_id: str) -> Line:
        mark = ("> ", "key") if operation_id == self.cursor_id else ("  ", "text")
        row = self.causes.get(operation_id)
        if row is None:
            return (mark, text(operation_id, "faint"))
        now = times.together(self.state.now()).wall
        width = self.widths
        found = self.asked.get(row.questions[0].escalation_id)
        expires_at = row.expires_at(now)
        told = {
            "WHO": (who(row), "text"),
            "ASKS": (why(row, short=self.columns < WHOLE_FROM), "attention"),
            "FOR": (_short(text(what(row, found))[0], width.get("FOR", 0)), "text"),
            "REQ": (_number(found), "muted"),
            "WAITS": (rows.short_countdown(max(0, now - row.oldest_at)), "muted"),
            "EXPIRES": (expires(expires_at, now), _hurry(expires_at, now)),
            "ENDS": (_ends(row.ends_at(now), now), "muted"),
        }
        line: Line = (mark,)
        for number, (head, cells) in enumerate(width.items()):
            cell, role = told[head]
            line = (*line, *(((" ", "text"),) if number else ()), (fit(cell, cells, right=head in RIGHT), role))
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


def _short(said: str, width: int) -> str:
    """An address in a column: without its scheme, a masked query as `?...`; of one that is too long the end, which
    tells it from others."""
    brief = said.replace("https://", "").replace("http://", "").replace(" (its query is masked)", "?...")
    method, space, address = brief.partition(" ")
    if cell_len(brief) <= width or "://" not in said:
        return brief
    return f"{method} {cut_front(address, width - len(method) - len(space))}"


def expires(at: Instant | None, now: Instant) -> str:
    """Counts down; a question that does not expire has none."""
    if at is None:
        return words.NOTHING
    return PASSED if at <= now else rows.countdown(at - now)


def _hurry(at: Instant | None, now: Instant) -> str:
    return "faint" if at is None else "danger" if at - now < 30_000 else "attention"


def _ends(at: Instant | None, now: Instant) -> str:
    if at is None:
        return words.NOTHING
    return PASSED if at <= now else rows.short_countdown(at - now)


def _number(asked: AskedFor | None) -> str:
    """`3/12`."""
    return asked.number.replace(" of ", "/") if asked is not None and asked.number else words.NOTHING
