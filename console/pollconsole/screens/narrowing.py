"""Narrowing and ordering the table: a filter that is typed, a column's letter that is awaited.

Job: the keys that mean text meanwhile, and what they make of the shared state. Must not know: how rows are drawn, how
they are ordered, the store. While a mode is on, every key is its own and none opens or decides anything.
"""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.binding import Binding, BindingType
from textual.timer import Timer

from pollconsole.board import SORT_KEYS
from pollconsole.safe import is_drawn
from pollconsole.screens.base import bound
from pollconsole.screens.list_keys import ListKeys
from pollconsole.state import State

MAX_NEEDLE: Final = 60
MANY: Final = 1_000
"""From so many rows on, ordering them is no part of showing a typed letter."""
ORDER_AFTER_S: Final = 0.05
"""Later than the next frame."""


class Narrowing(ListKeys):
    """Subclasses draw: `_draw_mode` what is typed, `_redraw` the rows."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("filter", "filter"),
        bound("sort", "sort"),
        bound("reverse", "reverse"),
        Binding("escape", "back", "clear the filter"),
    ]

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.mode = ""
        """`filter` while the filter is typed, `sort` while a column's letter is awaited, else empty."""
        self._ordering: Timer | None = None

    def _draw_mode(self) -> None:
        raise NotImplementedError

    def ordered_now(self) -> None:
        """The rows are being ordered: what was put off is not wanted any more."""
        if self._ordering is not None:
            self._ordering.stop()
            self._ordering = None

    def on_key(self, event: events.Key) -> None:
        """While a filter is typed or a column's letter is awaited, keys mean that alone."""
        if not self.mode:
            self.begin_typing(event, filter=self.action_filter, sort=self.action_sort)
            return
        event.stop()
        event.prevent_default()
        before = self.state.needle, self.state.sort
        if self.mode == "sort":
            self.mode = ""
            if event.key in SORT_KEYS:
                self.state.sort = SORT_KEYS[event.key]
        else:
            self._type(event)
        if before == (self.state.needle, self.state.sort):
            self._draw_mode()
        elif len(self.state.board.operations) < MANY:
            self._redraw()
        else:  # what was typed stands there at once, the rows follow
            self._draw_mode()
            self._ordering = self._ordering or self.set_timer(ORDER_AFTER_S, self._redraw)

    def _type(self, event: events.Key) -> None:
        state = self.state
        if event.key == "enter":
            self.mode, state.last_needle = "", state.needle or state.last_needle
        elif event.key == "escape":
            state.last_needle = state.needle or state.last_needle
            self.mode, state.needle = "", ""
        elif event.key == "backspace":
            state.needle = state.needle[:-1]
        elif event.key == "ctrl+u":
            state.needle = ""
        elif event.character and is_drawn(event.character) and len(state.needle) < MAX_NEEDLE:
            state.needle += event.character

    def action_filter(self) -> None:
        self.mode = "filter"
        self._draw_mode()

    def action_sort(self) -> None:
        self.mode = "sort"
        self._draw_mode()

    def action_reverse(self) -> None:
        self.state.reverse = not self.state.reverse
        self._redraw()

    def action_back(self) -> None:
        self.state.last_needle = self.state.needle or self.state.last_needle
        self.state.needle = ""
        self._redraw()
