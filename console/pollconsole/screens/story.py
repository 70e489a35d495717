"""The story of one operation, live.

Job: read new events on the core's thread, draw their lines, stay at the end. Must not know: the sentences (the
core tells
them), decisions.

Source: spec A2, V2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pollconsole.draw import Line, text
from pollconsole.state import State
from pollconsole.widgets import LinesView
from pollcore.facts import Operation, PollconsoleError

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_CLOCK_CELLS: Final = 8
_LOUD: Final = ("escalated", "refused", "no answer", "lost")
_GOOD: Final = ("succeeded", "granted")
MAX_LINE: Final = 600


class StoryView(LinesView):
    """The lines of one operation's story; tell it which with `follow_operation` at every tick."""

    def __init__(self, state: State, *, id: str | None = None) -> None:
        super().__init__(state, id=id, follow=True, indent=9)
        self.events: Sequence[dict[str, Any]] = ()
        """What the lines were told from, as documents."""
        self._of: str | None = None
        self._change = -1
        self._reading = False

    def follow_operation(self, operation: Operation | None) -> None:
        """Show the story of *operation*; reads only when it is another one or has changed, one read at a time."""
        if operation is None:
            self._of = None
            self.show(())
            return
        if operation.operation_id != self._of:
            self._of, self._change, self.events = operation.operation_id, -1, ()
            self.show(((("reading ...", "faint"),),))
        if operation.change != self._change and not self._reading:
            self._reading = True
            self.run_worker(self._read(operation.operation_id, operation.change))

    async def _read(self, operation_id: str, change: int) -> None:
        try:
            events, lines = await self.state.story(operation_id)
            if operation_id == self._of:
                self._change, self.events = change, events
                self.show([story_line(line) for line in lines])
        except PollconsoleError as error:
            if operation_id == self._of:
                self._change = change
                self.show(((text(f"the story cannot be read: {error}", "danger"),),))
        finally:
            self._reading = False


def story_line(line: str) -> Line:
    """One line of the story with the roles of its parts."""
    if _DAY.fullmatch(line):
        return (text(line, "faint"),)
    clock, rest = line[:_CLOCK_CELLS], line[_CLOCK_CELLS:]
    return ((clock, "muted"), text(rest, story_role(rest), MAX_LINE))


def story_role(told: str) -> str:
    """How loud a line of the story is."""
    if any(word in told for word in _LOUD):
        return "attention"
    if any(word in told for word in _GOOD):
        return "good"
    return "faint" if "about to be sent" in told else "text"
