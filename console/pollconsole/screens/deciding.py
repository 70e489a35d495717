"""What every card does on its screen: it is guarded, and a note can be written on it.

Job: paint the guard's view, write a note. Must not know: what is asked, how a choice is carried out, how the frame is
laid out. Nothing here takes the focus; leaving decides nothing; every key but the guard's is counted and ignored. While
a note is written no guard is open, so nothing can be decided; then the card is guarded anew, from LOCKED on, the note
among its lines.

Source: spec A1, G3, G4, G8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType

from pollconsole import draw
from pollconsole.draw import Line, width_of
from pollconsole.guard_card import GuardedCard
from pollconsole.guard_facts import MIN_COLUMNS, MIN_ROWS, NAVIGATION, Evidence, GuardView, Inspect, State
from pollconsole.guard_facts import Choice as Key
from pollconsole.guarded import GuardedApp
from pollconsole.screens.card_frame import INDENT, CardFrame
from pollconsole.screens.card_lines import guard_bar
from pollconsole.screens.note import Note
from pollconsole.state import State as Shared
from pollconsole.widgets import LinesView, OneLine
from pollcore.facts import PollconsoleError, StoreUnusable

CHANGED: Final[Line] = (("it changed and was drawn anew ", "attention"),)
AGED: Final[Line] = (("time has changed it: r draws anew ", "danger"),)
CHOOSE: Final = "1-9"
"""In the footer: the digits."""
AGE_TICKS: Final = 8
"""Between two looks whether time alone has changed what a card offers: two seconds."""
MAX_LABEL: Final = 44
"""A label in the prompt, which stands on one line of 80 cells; the card and the confirmation have it whole."""


def not_done(error: PollconsoleError) -> str:
    """What is said where an answer led to *error*. A store that failed may have failed after the request had left: its
    own words tell which."""
    return str(error) if isinstance(error, StoreUnusable) else f"refused: {error}"


class DecidingScreen(CardFrame):
    """One card. Subclasses read it, draw it, and carry out what the guard proved."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave it waiting"),
        Binding("w", "note", "note", tooltip="write a note that is recorded with the decision"),
    ]
    reads = True
    more_keys: ClassVar[frozenset[str]] = frozenset("jkgGw")
    """Keys beside the guard's own that reach this screen's bindings while its card is open; like every input they end
    the quiet."""

    shown: Any
    """What the core drew last; None: nothing yet."""

    def __init__(self, state: Shared) -> None:
        super().__init__(state)
        self.notice: Line = ()
        """What became of the card itself; it stands beside the guard's state, where nothing moves for it."""
        self.aged = False
        """Time alone has changed what the card offers; it stands as it was drawn, and is refused if it is decided."""
        self._ticks = 0
        self._prompt: Line = ()
        self._alone: Line = ()
        self.note = Note()
        self._noted = ""
        """The question that the note belongs to."""
        self._busy = False
        self._view: GuardView | None = None
        self._confirms: Mapping[str, Sequence[Line]] = {}
        self._keys: tuple[tuple[str, str], ...] = ()

    @property
    def guarded(self) -> GuardedApp[Any]:
        app = self.app
        assert isinstance(app, GuardedApp)
        return app

    def on_unmount(self) -> None:
        self.guarded.guard_close()

    # --- for subclasses -----------------------------------------------------------------------------------------------

    def decided(self, evidence: Evidence) -> Any:
        """The guard proved the keys of one choice."""
        raise NotImplementedError

    def inspected(self, chosen: Inspect) -> None:
        """A choice that decides nothing was taken."""
        raise NotImplementedError

    def guard_again(self) -> None:
        """The note was written: draw the card with it, locked anew."""
        raise NotImplementedError

    def painted(self) -> None:
        """The card was written to the terminal, its first page at least; called again and again."""

    def recall_note(self, question: str) -> None:
        """*question* is about to be drawn: with the note that was written on it when its card was left."""
        self._noted = question
        if not self.note.text and not self.note.writing:
            self.note.text = self.state.notes.get(question, "")

    def forget_note(self) -> None:
        """It was recorded with a decision."""
        self.state.keep_note(self._noted, "")

    def show_reading(self, notice: Line = ()) -> None:
        """Nothing is shown yet, so nothing can be decided."""
        self.guarded.guard_close()
        self.notice, self._view, self.aged, self._alone = notice, None, False, ()
        self.query_one("#confirm").display = False
        self.query_one("#card", LinesView).show(((("reading the card ...", "muted"),),))

    def show_keys(self, *pairs: tuple[str, str]) -> None:
        """The footer: *pairs* in the first step; in the second every key but the letter goes back."""
        self._keys = pairs
        if self.app.size.width < MIN_COLUMNS or self.app.size.height < MIN_ROWS:
            pairs = tuple(each for each in pairs if each[0] != CHOOSE)  # nothing can be chosen here
        if self.note.writing:
            self.keys(("Enter", "keep the note"), ("Esc", "leave it as it was"))
            return
        if self._view is not None and self._view.step == 2 and not self._busy:
            pairs = (("the letter shown", "confirms"), ("any other key", "goes back"))
        self.keys(*pairs)

    def show_lines(self, lines: Sequence[Line]) -> LinesView:
        """Draw the card's text, and the note under it."""
        body = self.query_one("#card", LinesView)
        body.wrap_for(self.text_width)
        body.show([*lines, *self.note.shown])
        self.query_one("#said", OneLine).show(())
        self._show_reason(self._reason)
        return body

    def say_alone(self, line: Line) -> None:
        """What happens if nobody decides, from now on; it counts on beside the prompt and moves nothing."""
        if line != self._alone:
            self._alone = line
            if self._view is not None and not self.note.writing and not self._busy:
                self._draw_prompt()

    def _draw_prompt(self) -> None:
        """The prompt; beside it, while there is room and nothing was chosen, what happens if it is left alone."""
        room = self.app.size.width - width_of(self._prompt)
        beside = self._view is not None and self._view.step == 1 and width_of(self._alone) < room
        self.query_one("#prompt", OneLine).show(self._prompt, self._alone if beside else ())

    def look_at_age(self, shown: Any, ticks: int = AGE_TICKS) -> None:
        """Once in so many ticks: has time alone changed what *shown* offers? It is said, and nothing moves (G8)."""
        self._ticks += 1
        if self._ticks % ticks or self.aged or self._busy or self.state.read_only or not self.is_current:
            return
        self.run_worker(self._look_at_age(shown), group="age", exclusive=True)

    async def _look_at_age(self, shown: Any) -> None:
        try:
            changed = await self.state.link.ask(lambda core: core.actions.aged(shown))
        except PollconsoleError:
            return  # what is asked of the core next says why
        if changed and shown is self.shown and not self._busy:
            self.aged = True
            self.say_notice(AGED)

    def say_notice(self, notice: Line) -> None:
        """What became of the card itself; beside the guard's state, where nothing moves for it."""
        self.notice = notice
        if self._view is not None and not self.note.writing:
            self._draw_guard(self._view)

    def guard(self, digest: str, keys: tuple[Key, ...], confirms: Mapping[str, Sequence[Line]]) -> None:
        """Guard exactly the lines that are drawn. *confirms*: by digit, what is about to be done."""
        if self.note.writing:
            self._draw_note()
            return
        if self.state.read_only:
            self.query_one("#guard", OneLine).show(((" READ-ONLY", "held"),))
            self.query_one("#prompt", OneLine).show(((" this console was started to look, not to decide", "muted"),))
            return
        self._confirms = confirms
        wrapped = {
            digit: tuple(
                draw.plain(piece) for line in lines for piece in draw.wrap(line, self.text_width, indent=INDENT)
            )
            for digit, lines in confirms.items()
        }
        body = self.query_one("#card", LinesView)
        self.guarded.guard_open(
            GuardedCard(
                card_digest=digest,
                lines=body.lines,
                choices=keys,
                confirm_lines=wrapped,
                navigation=NAVIGATION | self.more_keys,
                place=self._place,
            ),
            screen=self,
            on_guard_change=self._draw_guard,
            on_evidence=self.decided,
            on_inspect=self.inspected,
        )

    def _draw_guard(self, view: GuardView) -> None:
        """Paint state, bar, marker and prompt; in the second step what exactly is about to be granted."""
        if not self.query("#guard"):
            return  # the card is being taken down between two ticks of the guard
        self._view = view
        if self.guarded.guard_painted:
            self.painted()
        state, prompt, message = guard_bar(view)
        self.query_one("#guard", OneLine).show(state, self.notice)
        self._prompt = prompt
        self._draw_prompt()
        self.query_one("#said", OneLine).show(message)
        self.show_keys(*self._keys)
        if self._reason and (view.rejected_keys or view.step == 2 or view.state is State.PENDING):
            self._show_reason(())  # a key that the guard used up
        confirm = self.query_one("#confirm", LinesView)
        lines = self._confirms.get(view.choice.digit) if view.choice is not None else None
        if lines is not None:
            confirm.wrap_for(self.text_width)
            confirm.show(lines)
            confirm.styles.height = len(confirm.lines) + 1
        confirm.display = lines is not None

    # --- keys ---------------------------------------------------------------------------------------------------------

    def on_key(self, event: events.Key) -> None:
        """A key that the guard did not use up; while a note is written there is no guard, and all of them are text."""
        if self.note.writing:
            event.stop()
            event.prevent_default()
            self._write(event)
        elif self._reason:
            self._show_reason(())

    def on_paste(self, event: events.Paste) -> None:
        if self.note.writing:
            event.stop()
            self.note.paste(event.text)
            self._draw_note()

    def action_note(self) -> None:
        """Write a note. The card is closed to the guard meanwhile: no key can choose or confirm."""
        view = self._view
        if view is None or view.step != 1 or view.state is State.DECIDED or self._busy or self.state.read_only:
            return
        self.guarded.guard_close()
        self.note.begin()
        self._show_reason(())
        self.query_one("#confirm").display = False
        self.query_one("#guard", OneLine).show(
            ((" LOCKED", "danger"), ("   nothing can be chosen while you write", "muted"))
        )
        self.query_one("#prompt", OneLine).show(((" the note is recorded with what you decide then", "muted"),))
        self.say_beside("")
        self._draw_note()

    def _write(self, event: events.Key) -> None:
        if event.key not in ("enter", "escape"):
            self.note.type(event.key, event.character)
            self._draw_note()
            return
        self.note.end(keep=event.key == "enter")
        self.state.keep_note(self._noted, self.note.text)
        self._draw_note()
        self.query_one("#card", LinesView).scroll_home(animate=False)  # it must be seen whole once more
        self.guard_again()

    def _draw_note(self) -> None:
        view = self.query_one("#note", LinesView)
        view.display = self.note.writing
        if self.note.writing:
            view.wrap_for(self.text_width)
            view.show((self.note.line,))
            view.styles.height = len(view.lines)
        self.show_keys(*self._keys)

    def action_leave(self) -> None:
        if self._view is not None and self._view.state is State.DECIDED and self._busy:
            return
        self.app.pop_screen()
