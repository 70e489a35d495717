"""Looking for words on a screen: `/`, the words, Enter, then `n` and `N` from place to place.

Job: typing, and where the search stands. Must not know: what is searched; a screen says how it goes to a place.
"""

from __future__ import annotations

from typing import ClassVar, Final

from textual import events
from textual.binding import BindingType

from pollconsole.draw import Line, width_of
from pollconsole.safe import is_drawn
from pollconsole.screens.base import ConsoleScreen, bound
from pollconsole.state import State
from pollconsole.widgets import SaidLine

MAX_NEEDLE: Final = 60


class SearchingScreen(ConsoleScreen):
    """A screen whose words can be looked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        bound("search", "search", "search what stands here; Enter goes there, Esc leaves it"),
        bound("next_match", "match(1)"),
        bound("previous_match", "match(-1)"),
    ]
    says = True
    searched = "this screen"
    """What is searched, in a sentence."""

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.typing = False
        """While what to look for is typed, keys mean that alone."""
        self.needle = ""
        self._place = ""

    def why_not(self, action: str) -> str | None:
        if action.startswith("match") and not self.needle:
            return "nothing was looked for yet"
        return super().why_not(action)

    def go_to(self, needle: str, by: int) -> tuple[int, int]:
        """To the next (*by* 1) or previous (-1) place of *needle*: (which, of how many); (0, 0): none. An empty needle
        takes the mark of the last place away."""
        raise NotImplementedError

    def search_line(self) -> Line:
        """What is looked for and where that stands; empty: nothing."""
        if not (self.typing or self.needle):
            return ()
        sought = f" / {self.needle}{'_' if self.typing else ''}"
        return ((sought, "attention" if self.typing else "key"), (f"  {self._place}", "muted"))

    def said_line(self) -> Line:
        """What was just said, while it is young."""
        message = self.state.message
        if message is not None:
            return ((" ", "text"), (message.text, message.role), (" ", "text"))
        return ()

    def draw_said(self, on: SaidLine, otherwise: Line = ()) -> None:
        """What is looked for, and what was just said where that has room; without it that whole, else *otherwise*."""
        sought, said = self.search_line(), self.said_line()
        if said and not sought:
            on.say(said)
        else:
            both = bool(sought) and width_of(sought) + width_of(said) < self.app.size.width
            on.show(sought or otherwise, said if both else ())

    def search_keys(self) -> bool:
        """Whether words are typed now; then the last line names the keys for that."""
        if self.typing:
            self.keys(("Enter", "look for it"), ("Esc", "leave the search"))
        return self.typing

    def on_key(self, event: events.Key) -> None:
        if not self.typing:
            self.begin_typing(event, search=self.action_search)
            return
        event.stop()
        event.prevent_default()
        if event.key == "enter":
            self.typing = False
            self.action_match(1)
        elif event.key == "escape":
            self.typing, self.needle, self._place = False, "", ""
            self.go_to("", 1)
        elif event.key == "backspace":
            self.needle = self.needle[:-1]
        elif event.key == "ctrl+u":
            self.needle = ""
        elif event.character and is_drawn(event.character) and len(self.needle) < MAX_NEEDLE:
            self.needle += event.character
        self.tick(self.state.now(), False)

    def action_search(self) -> None:
        self.typing, self.needle, self._place = True, "", ""
        self.go_to("", 1)
        self.tick(self.state.now(), False)

    def action_match(self, by: int) -> None:
        if not self.needle:
            self._place = ""
            search, later, earlier = (self.key_of(each) for each in ("search", "next_match", "previous_match"))
            self.state.say(f"{search} searches {self.searched}; {later} and {earlier} go from place to place", "muted")
        else:
            which, many = self.go_to(self.needle, by)
            self._place = f"{which} of {many}" if many else f"not in {self.searched}"
        self.tick(self.state.now(), False)
