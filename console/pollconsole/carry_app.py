"""What an app hands out: a copy to the terminal's clipboard or a file, an export to a file of the home.

Job: carry it out, say what came of it. Must not know: which screen asked, what a row says.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Sequence
from typing import Final

from pollconsole import bridge, carry, carry_clipboard, ui_file
from pollconsole.carry_clipboard import Between, Tmux
from pollconsole.screens.base import ConsoleScreen
from pollconsole.theme_app import ThemedApp
from pollcore.facts import Operation, Refused

KEY: Final = "clipboard"
"""In ui.json: `terminal` (OSC 52) or `file` (HOME/clipboard.txt alone)."""
TO_FILE: Final = "file"
TMUX_LIMIT_S: Final = 1.0
"""How long tmux may take to say what it lets through."""
EXPORTS: Final = "export"
MAX_EXPORTS: Final = 8
"""Written at a time; none is given up for the next."""
_ASK_TMUX: Final = ("tmux", "display-message", "-p", "#{set-clipboard}|#{allow-passthrough}")


class CarryingApp(ThemedApp):
    """An app whose screens copy and export."""

    def copy(self, copied: str, what: str) -> None:
        """Send *copied* to the terminal's clipboard (OSC 52). A terminal never says whether it took it.

        Beyond what terminals take, where nothing lets it through, and where the operator wants it so, it is written to
        HOME/clipboard.txt instead.
        """
        if self._guard_driver is None:
            return
        stands = carry_clipboard.between(os.environ)
        if self.copies_to_file:
            self._copy_to_file(copied, what, "the clipboard is switched to a file")
        elif why := carry_clipboard.too_long(copied):
            self._copy_to_file(copied, what, why)
        elif stands is Between.TMUX:
            self.run_worker(self._copy_through_tmux(copied, what), group="copy")
        else:
            self._send(copied, what, stands, None)

    @property
    def copies_to_file(self) -> bool:
        """Whether OSC 52 is switched off."""
        return ui_file.read(self.home).get(KEY) == TO_FILE

    def action_clipboard(self) -> None:
        """Switch between the terminal's clipboard and the file."""
        chosen = "terminal" if self.copies_to_file else TO_FILE
        kept = ui_file.write(self.home, {KEY: chosen})
        where = f"{carry.CLIPBOARD} in the home" if chosen == TO_FILE else "the terminal's clipboard"
        self.state.say(f"copies go to {where}" if kept else "this could not be remembered, nothing changed", "muted")

    async def _copy_through_tmux(self, copied: str, what: str) -> None:
        tmux = await asyncio.to_thread(ask_tmux)
        self._send(copied, what, Between.TMUX, tmux)

    def _send(self, copied: str, what: str, stands: Between, tmux: Tmux | None) -> None:
        way = carry_clipboard.way(copied, stands, tmux)
        if way.sequence and self._guard_driver is not None:
            self._guard_driver.write(way.sequence)
        if way.sequence and way.sure:
            self._said(f"{what}: {way.said}")
        else:
            self._copy_to_file(copied, what, way.said)

    def _copy_to_file(self, copied: str, what: str, why: str) -> None:
        try:
            lasts = "" if self.state.home_lasts else ", deleted when this ends"
            self._said(f"{what}: {carry.keep_copy(self.home, copied)}{lasts} ({why})")
        except Refused as error:
            self._said(f"{what} was not sent: {why}; {error}", "attention")

    def _said(self, words: str, role: str = "text") -> None:
        self.state.say(words, role)
        if isinstance(self.screen, ConsoleScreen) and self.screen.ready:
            self.screen.tick(self.state.now(), False)

    def export(self, ids: Sequence[str], form: carry.Format = carry.Format.JSON_LINES) -> None:
        """Write these rows to a file of the home, beside the screen's loop."""
        operations = [self.state.board.operations[each] for each in ids if each in self.state.board.operations]
        if not operations:
            self.state.say("no rows here, nothing was exported", "muted")
            return
        if sum(each.group == EXPORTS for each in self.workers) >= MAX_EXPORTS:
            said = f"{MAX_EXPORTS} exports are still being written; press it again when they are told"
            self.state.say(said, "attention")
            return
        self.run_worker(self._export(operations, form), group=EXPORTS)

    async def _export(self, operations: Sequence[Operation], form: carry.Format) -> None:
        at = self.state.now().wall
        try:
            path, count = await asyncio.to_thread(
                lambda: carry.export(self.home, (bridge.row(each) for each in operations), at, form)
            )
        except Refused as error:
            self.state.say(str(error), "attention")
        else:
            rows = f"{count:,} row{'s' * (count != 1)}"
            self.state.written(f"{rows} exported to {carry.FOLDER}/{path.name} in the home", f"{rows} exported", path)


def ask_tmux() -> Tmux | None:
    """What the tmux around this program lets through; None: it does not say."""
    pane = os.environ.get("TMUX_PANE")
    target = ("-t", pane) if pane else ()
    command = [*_ASK_TMUX[:2], *target, *_ASK_TMUX[2:]]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TMUX_LIMIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    clipboard, bar, passthrough = done.stdout.strip().partition("|")
    return Tmux(clipboard, passthrough) if done.returncode == 0 and bar and clipboard else None
