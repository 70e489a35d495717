"""The list of themes: moving the cursor wears a theme, Enter keeps it, Esc takes the old one back.

Job: list, samples of every role, keys. Must not know: files, Textual's themes; the app wears and remembers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import rows, words
from pollconsole.draw import Line, fit
from pollconsole.screens.base import ConsoleScreen, bound
from pollconsole.state import State
from pollconsole.themes import Loaded
from pollconsole.widgets import OneLine, Table
from pollcore.facts import Moment, Status

NAME: Final = 26
ABOUT: Final = 48
BAR: Final = 20
AROUND: Final = 4
"""Lines of the screen besides list and samples: head, columns, message, keys."""
GAP: Final = (" ", "text")


class ThemeTable(Table):
    """Themes by name."""

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(state, id=id)
        self.themes: dict[str, Loaded] = {}

    def line_of(self, operation_id: str) -> Line:
        here = operation_id == self.cursor_id
        mark = ("> ", "key") if here else ("  ", "text")
        about = self.themes[operation_id].about
        return (mark, (fit(operation_id, NAME), "title" if here else "text"), GAP, (fit(about, ABOUT), "muted"))


class ThemeScreen(ConsoleScreen):
    """Every theme, seen before it is kept."""

    CSS = "#space { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "take the old one back"),
        bound("keep_theme", "keep"),
        bound("themes", "move(1)"),
        bound("down", "move(1)"),
        bound("up", "move(-1)"),
        bound("page_down", "move(8)"),
        bound("page_up", "move(-8)"),
        bound("first", "move(-1000)"),
        bound("last", "move(1000)"),
    ]

    def __init__(
        self,
        state: State,
        themes: Sequence[Loaded],
        worn: Loaded,
        *,
        wear: Callable[[Loaded], None],
        keep: Callable[[Loaded], None],
        notice: str = "",
    ) -> None:
        """*wear*: draw everything in it from now on. *keep*: remember it. *notice*: what else must be said here."""
        super().__init__(state)
        self._themes = {each.name: each for each in themes}
        self._before = worn
        self._wear = wear
        self._keep = keep
        self._notice = notice

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield OneLine(self.state, id="columns")
        yield ThemeTable(self.state, id="themes")
        for number, (_, ground) in enumerate(samples()):
            yield OneLine(self.state, ground=ground, id=f"sample{number}")
        yield OneLine(self.state, id="space")
        yield OneLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

    @property
    def table(self) -> ThemeTable:
        return self.query_one(ThemeTable)

    def on_mount(self) -> None:
        self.table.themes = self._themes
        self.table.cursor_id, self.table.placed = self._before.name, True
        self.table.show_ids(list(self._themes))
        for number, (line, _) in enumerate(samples()):
            self.query_one(f"#sample{number}", OneLine).show(line)
        self._lay_out(self.app.size.height)
        self.tick(self.state.now(), True)

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out(event.size.height)

    def _lay_out(self, height: int) -> None:
        """The samples stand right under the list; a long list is scrolled."""
        self.table.styles.height = max(1, min(len(self._themes), height - len(samples()) - AROUND))

    def tick(self, now: Moment, changed: bool) -> None:  # noqa: ARG002
        self.show_head(((" themes", "title"),), now)
        self.query_one("#columns", OneLine).show(((f"  {fit('THEME', NAME)} WHAT IT IS", "faint"),))
        self.query_one("#said", OneLine).show(((f" {self._notice}", "attention"),) if self._notice else ())
        self.keys(
            (f"{self.key_of('up')} {self.key_of('down')}", "wear it"),
            (self.key_of("keep_theme"), "keep it"),
            ("Esc", f"back to {self._before.name}"),
        )

    def action_move(self, by: int) -> None:
        self.table.move(by)
        self._wear(self._themes[self.table.cursor_id or self._before.name])

    def action_keep(self) -> None:
        self._keep(self._themes[self.table.cursor_id or self._before.name])
        self.app.pop_screen()

    def action_leave(self) -> None:
        self._wear(self._before)
        self.app.pop_screen()


def samples() -> list[tuple[Line, str]]:
    """Every role on the grounds where it stands, as lines with their ground; each says itself what it shows."""
    signs: list[tuple[str, str]] = [GAP]
    for status in (Status.WAITING, Status.HELD, Status.ESCALATED, Status.SUCCEEDED, Status.FAILED, Status.CLOSED):
        signs += [(words.status_text(status), rows.STATUS_ROLE[status]), ("  ", "text")]
    row: Line = (
        ("op-0042  ", "attention-text"),
        (words.status_text(Status.ESCALATED), "attention"),
        ("  running  ", "text"),
        ("1:40!", "danger"),
        ("  11/12!", "attention"),
        ("  0/3", "muted"),
        ("  HTTP ", "faint"),
        ("200 at 11:00:00", "muted"),
    )
    bar = rows.bar(7, 12, BAR)
    return [
        ((), ""),
        ((("  EVERY ROLE, ON EVERY GROUND", "faint"),), ""),
        (tuple(signs), ""),
        ((("  ", "text"), *row), ""),
        ((("> ", "key"), *row), "cursor"),
        ((GAP, ("requests ", "muted"), *bar, ("  7 of 12  ", "text"), ("carried out", "good")), ""),
        (
            (
                (" ! 3 decisions waiting, first ends in 4:10", "attention-text"),
                (" - ", "attention-text"),
                ("E", "key"),
                (" opens", "attention-text"),
            ),
            "attention",
        ),
        (((" ARMED    ", "good"), ("#" * BAR, "good"), ("  card 4711.0", "faint")), "attention"),
        (((" Enter", "key"), (" detail  ", "muted"), ("ACTIVE", "good"), ("  NOTHING IS SENT", "danger")), "footer"),
    ]
