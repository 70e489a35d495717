"""Lines that the core is asked for.

Job: read once on the core's thread, draw, read anew. Must not know: what is asked. Nothing here changes anything.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pollconsole.draw import Line, text
from pollconsole.screens.base import bound
from pollconsole.screens.text import LinesScreen
from pollconsole.state import State
from pollcore.facts import Moment, PollconsoleError

MAX_ERROR = 400


class ReadScreen(LinesScreen):
    """Subclasses say which lines."""

    beside = True
    BINDINGS: ClassVar[list[Any]] = [bound("read_anew", "read")]

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._lines: list[Line] = [(("reading ...", "faint"),)]
        self._exact = state.exact

    def on_mount(self) -> None:
        self.action_read()

    def tick(self, now: Moment, changed: bool) -> None:
        if self._exact is not self.state.exact:
            self._exact = self.state.exact
            self.action_read()
        super().tick(now, changed)

    def action_read(self) -> None:
        self.run_worker(self._read(), exclusive=True, group="read")

    async def _read(self) -> None:
        try:
            self._lines = await self.lines()
        except PollconsoleError as error:
            self._lines = [(text(str(error), "attention", MAX_ERROR),)]
        if self.is_current:
            self.tick(self.state.now(), True)

    async def lines(self) -> list[Line]:
        """What the core says now."""
        raise NotImplementedError

    def content(self) -> list[Line]:
        return self._lines
