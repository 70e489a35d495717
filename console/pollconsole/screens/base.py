"""What every screen of the console has: the shared state, a tick, one footer line with keys.

Job: the frame. Must not know: any single screen. Textual's own footer leaks a widget per key, so the keys are one line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen

from pollconsole import rows, times, words
from pollconsole.board import Asked
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
    says: ClassVar[bool] = False
    """What was said last stands on it while it is young."""
    below: bool = False
    """One that stands beside the table may be opened over it."""
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, state: State) -> None:
        super().__init__()
        state.screen_opened()
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
        room = self.app.size.width - width_of(title) - 1
        self.query_one("#head", OneLine).show(title, waiting_line(self.state, now, room))

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

    def keys(self, *pairs: tuple[str, str], last: int = 1) -> None:
        """Draw the footer: key and what it does, the most wanted first. *last*: how many at the end always stay, the
        way out and the way to the others."""
        self.query_one("#foot", OneLine).show(key_line(pairs, self.app.size.width, last))


def key_line(pairs: Sequence[tuple[str, str]], width: int = 0, last: int = 1) -> Line:
    """`Enter detail  / filter`. Where *width* holds not all of them, whole ones before the *last* ones are left out."""
    shown = list(pairs)
    while width and width_of(_key_line(shown)) > width and len(shown) > last:
        del shown[-1 - last]
    return _key_line(shown)


def _key_line(pairs: Sequence[tuple[str, str]]) -> Line:
    line: Line = ((" ", "text"),)
    for number, (key, does) in enumerate(pairs):
        line = (*line, *((GAP,) if number else ()), (key, "key"), (f" {does}", "muted"))
    return line


def waiting_line(state: State, now: Moment, room: int = 0) -> Line:
    """`! A 2, 1:30 left; E 12, 4:10 left ` for the corner of every screen, or that nothing waits. *room*: cells that
    there are; 0: enough."""
    queues = _queues(state, now)
    if not queues:
        whole: Line = (("nothing waits for you ", "muted"),)
        return whole if not room or width_of(whole) <= room else (("nothing waits ", "muted"),)
    told = [f"{state.keymap.shown(name)} {asked.count:,}" for name, asked in queues]
    forms = [f"{told[0]} wait, {_how_long(queues[0][1])}"] if len(queues) == 1 else []
    brief = [f"{each}, {_how_long(asked, brief=True)}" for each, (_, asked) in zip(told, queues, strict=True)]
    forms += ["; ".join(brief), " ".join(told)]
    said = next((each for each in forms if not room or cell_len(each) + 3 <= room), forms[-1])
    return ((f"! {said} ", "attention-text"),)


def strip_line(state: State, now: Moment, width: int = 0) -> Line:
    """The queue strip: what waits, what hurries, and which key opens it. *width*: cells that there are; 0: enough."""
    queues = _queues(state, now)
    if not queues:
        return ((" nothing waits for you", "muted"),)
    keys = [state.keymap.shown(name) for name, _ in queues]
    opens: Line = ((" or ".join(keys), "key"), (" opens" if len(keys) == 1 else " open", "attention-text"))
    for cards, brief in ((True, False), (False, False), (False, True)):
        told = [_counted(name, asked, cards=cards) for name, asked in queues]
        if len(queues) == 1:
            said = f"{told[0]} waiting, {_how_long(queues[0][1], brief=brief)}"
        else:
            pairs = zip(told, queues, strict=True)
            said = "; ".join(f"{each}, {_how_long(asked, brief=brief)}" for each, (_, asked) in pairs)
        line: Line = ((f" ! {said} - ", "attention-text"), *opens)
        if not width or width_of(line) <= width:
            return line
    return ((" ", "text"), *waiting_line(state, now, width - 1))  # the keys stand before what they open


def _queues(state: State, now: Moment) -> list[tuple[str, Asked]]:
    """By the names of the actions that open them: the queues in which something waits."""
    waiting = state.board.waiting(times.together(now))
    named = (("approvals", waiting.approvals), ("decisions", waiting.decisions))
    return [(name, asked) for name, asked in named if asked.count]


def _how_long(asked: Asked, *, brief: bool = False) -> str:
    """What stands first in its queue: how long it is still there; where nothing runs out, how long the oldest waits."""
    if asked.ends_ms is None:
        return f"oldest {words.span(asked.oldest_ms)}"
    left = rows.short_countdown(asked.ends_ms)
    return f"{left} left" if brief else f"first ends in {left}"


def _counted(name: str, asked: Asked, *, cards: bool) -> str:
    """`40 decisions on 3 cards`."""
    many = f" on {asked.cards:,} card{'s' * (asked.cards > 1)}" if cards and asked.cards < asked.count else ""
    return f"{asked.count:,} {name[: None if asked.count > 1 else -1]}{many}"
