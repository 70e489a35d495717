"""What every card has on its screen: the text, the confirmation, the guard's lines, and the keys that only move.

Job: compose, paint the guard's view, scroll, write a note. Must not know: what is asked, how a choice is carried out.
Nothing here takes the focus; leaving decides nothing; every key but the guard's is counted and ignored. While a note is
written no guard is open, so nothing can be decided; then the card is guarded anew, from LOCKED on, the note among its
lines.

Source: spec A1, G3, G4, G8.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from pollconsole import draw
from pollconsole.draw import Line, text
from pollconsole.guard_facts import NAVIGATION, Evidence, GuardView, Inspect, State
from pollconsole.guard_facts import Choice as Key
from pollconsole.guarded import GuardedApp, GuardedCard
from pollconsole.screens.base import ConsoleScreen
from pollconsole.screens.card_lines import guard_bar
from pollconsole.screens.note import Note
from pollconsole.state import State as Shared
from pollconsole.widgets import LinesView, OneLine

SCROLLBAR: Final = 1
MARGIN: Final = 2
"""Cells left and right of the card's text."""
INDENT: Final = 4
MAX_REASON: Final = 600
"""Characters of a refusal's reason: eight lines at 80 cells, so that the card keeps room."""
MAX_LABEL: Final = 44
"""A label in the prompt, which stands on one line of 80 cells; the card and the confirmation have it whole."""


class DecidingScreen(ConsoleScreen):
    """One card. Subclasses read it, draw it, and carry out what the guard proved."""

    CSS = """
    #card { height: 1fr; padding: 0 0 0 2; }
    #why { height: auto; padding: 0 0 0 1; display: none; }
    #note { height: auto; padding: 0 0 0 2; display: none; }
    #clock { display: none; }
    #confirm { height: auto; max-height: 17; padding: 0 0 0 2; display: none;
        border-top: solid $warning; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "leave it waiting"),
        # fixed: no file gives a card other keys
        Binding("down,j", "scroll(1)", "down"),
        Binding("up,k", "scroll(-1)", "up"),
        Binding("pagedown", "page(1)", "page down"),
        Binding("pageup", "page(-1)", "page up"),
        Binding("home,g", "ends(0)", "first"),
        Binding("end,G", "ends(1)", "last"),
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
        self._reason: Line = ()
        self._keys: tuple[tuple[str, str], ...] = ()

    @property
    def guarded(self) -> GuardedApp[Any]:
        app = self.app
        assert isinstance(app, GuardedApp)
        return app

    @property
    def text_width(self) -> int:
        """Cells of a line of the card."""
        return self.app.size.width - MARGIN - SCROLLBAR

    def compose(self) -> ComposeResult:
        yield OneLine(self.state, ground="footer", id="head")
        yield LinesView(self.state, id="card", indent=INDENT)
        yield LinesView(self.state, id="why", indent=0)
        yield LinesView(self.state, id="confirm", indent=INDENT)
        yield LinesView(self.state, id="note", indent=INDENT)
        yield OneLine(self.state, id="clock")
        yield OneLine(self.state, ground="attention", id="guard")
        yield OneLine(self.state, ground="attention", id="prompt")
        yield OneLine(self.state, id="said")
        yield OneLine(self.state, ground="footer", id="foot")

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

    def refused(self, why: str) -> None:
        """Show the first sentence of *why* whole over the guard's lines, until the next key."""
        self._show_reason((text(_first_sentence(why), "attention", MAX_REASON),))

    def _show_reason(self, reason: Line) -> None:
        self._reason = reason
        view = self.query_one("#why", LinesView)
        view.display = bool(reason)
        if reason:
            view.wrap_for(self.text_width)
            view.show((reason,))
            view.styles.height = len(view.lines)

    def show_keys(self, *pairs: tuple[str, str]) -> None:
        """The footer: *pairs* in the first step; in the second every key but the letter goes back."""
        self._keys = pairs
        if self.note.writing:
            self.keys(("Enter", "keep the note"), ("Esc", "leave it as it was"))
            return
        if self._view is not None and self._view.step == 2 and not self._busy:
            pairs = (("the letter shown", "confirms"), ("any other key", "goes back"))
        self.keys(*pairs)

    def say_beside(self, words: str) -> None:
        """One line under the card."""
        self.query_one("#said", OneLine).show(((f" {words}", "text"),))

    def show_nothing(self, why: Line) -> None:
        """There is no card: say why."""
        self.query_one("#card", LinesView).show((why,))
        self.query_one("#prompt", OneLine).show(((" nothing to decide here", "muted"),))
        self.query_one("#guard", OneLine).show(((" Esc goes back", "muted"),))

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

    def _place(self, line: str) -> int:
        """Whether *line* of the card is above (-1) or below (1) its visible part, or neither (0)."""
        body = self.query_one("#card", LinesView)
        at = next((n for n, each in enumerate(body.lines) if " ".join(each.split()) == line), None)
        top = body.scroll_offset.y
        if at is None or top <= at < top + body.size.height:
            return 0
        return -1 if at < top else 1

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

    def action_scroll(self, by: int) -> None:
        self.query_one("#card", LinesView).scroll_relative(y=by, animate=False)

    def action_page(self, by: int) -> None:
        view = self.query_one("#card", LinesView)
        view.scroll_relative(y=by * max(1, view.size.height - 1), animate=False)

    def action_ends(self, last: int) -> None:
        view = self.query_one("#card", LinesView)
        if last:
            view.scroll_end(animate=False)
        else:
            view.scroll_home(animate=False)


def _first_sentence(said: str) -> str:
    end = said.find(". ")
    return said if end < 0 else said[: end + 1]
