"""What an app hands out: a copy to the terminal's clipboard, an export to a file of the home.

Job: carry it out, say what came of it. Must not know: which screen asked, what a row says.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from pollconsole import bridge, carry
from pollconsole.screens.base import ConsoleScreen
from pollconsole.theme_app import ThemedApp
from pollcore.facts import Operation, Refused


class CarryingApp(ThemedApp):
    """An app whose screens copy and export."""

    def copy(self, copied: str, what: str) -> None:
        """Send *copied* to the terminal's clipboard (OSC 52). A terminal never says whether it took it."""
        try:
            sequence = carry.clipboard_sequence(copied)
        except Refused as error:
            self.state.say(f"{what} was not sent: {error}", "attention")
            return
        if self._guard_driver is None:
            return
        self._guard_driver.write(sequence)
        through = "; tmux passes it on if its set-clipboard is on" if os.environ.get("TMUX") else ""
        self.state.say(f"{what}: sent to the terminal's clipboard{through}")
        if isinstance(self.screen, ConsoleScreen) and self.screen.ready:
            self.screen.tick(self.state.now(), False)

    def export(self, ids: Sequence[str]) -> None:
        """Write these rows to a file of the home, beside the screen's loop."""
        operations = [self.state.board.operations[each] for each in ids if each in self.state.board.operations]
        if not operations:
            self.state.say("no rows here, nothing was exported", "muted")
            return
        self.run_worker(self._export(operations), exclusive=True, group="export")

    async def _export(self, operations: Sequence[Operation]) -> None:
        at = self.state.now().wall
        try:
            path, count = await asyncio.to_thread(
                lambda: carry.export(self.home, (bridge.row(each) for each in operations), at)
            )
        except Refused as error:
            self.state.say(str(error), "attention")
        else:
            rows = f"{count:,} row{'s' * (count != 1)}"
            self.state.say(f"{rows} exported to {carry.FOLDER}/{path.name} in the home", "good")
