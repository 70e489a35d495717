"""What every screen of the console has: the shared state, a tick, one footer line with keys.

Job: the frame. Must not know: any single screen. Textual's own footer leaks a widget per key, so the keys are one line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen

from pollconsole import words
from pollconsole.board import Waiting
from pollconsole.draw import Line, width_of
from pollconsole.key_names import ACTIONS
from pollconsole.state import State
from pollconsole.widgets import OneLine
from pollcore.facts import Moment

GAP = ("  ", "text")


def bound(name: str, action: str, tooltip: str | None = None) -> Binding:
    """The binding of an action that HOME/keys.toml can give other keys. *tooltip*: more words for the help."""
    named = ACTIONS[name]
    return Binding(",".join(named.keys), action, named.does, id=name, tooltip=tooltip or "")


class ConsoleScreen(Screen[None]):
    """A screen over the shared state. `tick` is called four times a second while it is on top."""

    AUTO_FOCUS: ClassVar[str | None] = None
    beside: ClassVar[bool] = False
    """It stands beside the table: another one takes its place."""
    reads: bool = False
    """Something on it has a time of its own."""
    below: bool = False
    """One that stands beside the table may be opened over it."""
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state
        self.ready = False
        """Composed: before it, there is nothing to draw on."""

    def on_mount(self) -> None:
        self.ready = True

    def _screen_resized(self, size: Size) -> None:  # noqa: ARG002
        """Always for the size that the terminal has now.

        Textual hands every layout's size to the screen once more: of two sizes under way at once (two quick resizes, a
        first guess and the truth) the older may come last, or both take turns for ever, at a full repaint each.
        """
        super()._screen_resized(self.app.size)

    def show_head(self, title: Line, now: Moment) -> None:
        """Draw the first line anew."""
        self.query_one("#head", OneLine).show(title, waiting_line(self.state, now))

    def begin_typing(self, event: events.Key, **acts: Callable[[], None]) -> None:
        """Begin at once what gives the next keys another meaning. *acts*: by the name of the action (`key_names`).

        A binding's action runs after its key went up to the app; a key typed right behind it, or while the terminal
        stood still, has reached this screen by then and would mean what it meant before.
        """
        for name, act in acts.items():
            if event.key in self.state.keymap.keys(name):
                event.stop()
                event.prevent_default()
                act()

    def tick(self, now: Moment, changed: bool) -> None:
        """Time passed; *changed*: rows or questions are new."""

    def why_not(self, action: str) -> str | None:  # noqa: ARG002
        """Why *action*, as a binding names it, cannot be used now, in a few words; None: it can."""
        return None

    def why_no_question(self, operation_id: str | None) -> str | None:
        """Why no question on this operation can be opened; None: one is open, or can be asked for."""
        board = self.state.board
        operation = board.operations.get(operation_id or "")
        if operation_id in board.questions:
            return None
        if operation is None or operation.status.is_end:
            return "it has ended, there is nothing to decide" if operation_id else "no row here"
        return "this console was started to look; it opens no question" if self.state.read_only else None

    def key_of(self, name: str) -> str:
        """The key of an action as it is in force."""
        return self.state.keymap.shown(name)

    def keys(self, *pairs: tuple[str, str], right: Line = ()) -> None:
        """Draw the footer: key and what it does."""
        self.query_one("#foot", OneLine).show(key_line(pairs), right)


def key_line(pairs: Sequence[tuple[str, str]]) -> Line:
    """`Enter detail  / filter`."""
    line: Line = ((" ", "text"),)
    for number, (key, does) in enumerate(pairs):
        line = (*line, *((GAP,) if number else ()), (key, "key"), (f" {does}", "muted"))
    return line


def waiting_line(state: State, now: Moment) -> Line:
    """`3 wait, oldest 4 min 10 s ` for the corner of every screen, or nothing."""
    waiting = state.board.waiting(now)
    if not waiting.total:
        return (("nothing waits for you ", "muted"),)
    counts = (("approvals", waiting.approvals), ("decisions", waiting.escalations))
    said = ", ".join(f"{state.keymap.shown(name)} {count:,}" for name, count in counts if count)
    return ((f"! {said} waiting, oldest {words.span(waiting.oldest_ms)} ", "attention-text"),)


def strip_line(state: State, now: Moment, width: int = 0) -> Line:
    """The queue strip: what waits, how long, and which key opens it. *width*: cells that there are; 0: enough."""
    waiting = state.board.waiting(now)
    if not waiting.total:
        return ((" nothing waits for you", "muted"),)
    named = (("approvals", waiting.approvals), ("decisions", waiting.escalations))
    keys = [state.keymap.shown(name) for name, count in named if count]
    opens: Line = ((" or ".join(keys), "key"), (" opens" if len(keys) == 1 else " open", "attention-text"))
    line: Line = ()
    for cards in (True, False):
        said = f" ! {_counted(waiting, cards)} waiting, oldest {words.span(waiting.oldest_ms)} - "
        line = ((said, "attention-text"), *opens)
        if not width or width_of(line) <= width:
            break
    return line


def _counted(waiting: Waiting, cards: bool) -> str:
    """`2 approvals and 40 decisions on 3 cards`."""
    parts = []
    for name, count, on in (
        ("approval", waiting.approvals, waiting.approval_cards),
        ("decision", waiting.escalations, waiting.causes),
    ):
        if count:
            many = f" on {on:,} card{'s' * (on > 1)}" if cards and on < count else ""
            parts.append(f"{count:,} {name}{'s' * (count > 1)}{many}")
    return " and ".join(parts)
