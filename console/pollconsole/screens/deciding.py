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
from pollconsole.draw import Line
from pollconsole.guard_card import GuardedCard
from pollconsole.guard_facts import NAVIGATION, Evidence, GuardView, Inspect, State
from pollconsole.guard_facts import Choice as Key
from pollconsole.guarded import GuardedApp
from pollconsole.screens.card_frame import INDENT, CardFrame
from pollconsole.screens.card_lines import guard_bar
from pollconsole.screens.note import Note
from pollconsole.state import State as Shared
from pollconsole.widgets import LinesView, OneLine

MAX_LABEL: Final = 44
"""A label in the prompt, which stands on one line of 80 cells; the card and the confirmation have it whole."""


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

    def __init__(self, state: Shared) -> None:
        super().__init__(state)
        self.notice: Line = ()
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
        self.notice, self._view = notice, None
        self.query_one("#confirm").display = False
        self.query_one("#card", LinesView).show(((("reading the card ...", "muted"),),))

    def show_keys(self, *pairs: tuple[str, str]) -> None:
        """The footer: *pairs* in the first step; in the second every key but the letter goes back."""
        self._keys = pairs
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
        self.query_one("#said", OneLine).show(self.notice)
        self._show_reason(self._reason)
        return body

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
        self._view = view
        if self.guarded.guard_painted:
            self.painted()
        state, prompt, message = guard_bar(view)
        self.query_one("#guard", OneLine).show(state)
        self.query_one("#prompt", OneLine).show(prompt)
        self.query_one("#said", OneLine).show(self.notice or message, message if self.notice else ())
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
