"""What an operator is told without asking: one message for each thing that changed while the console was open.

Job: compare what the board shows now with what it showed, and say the difference once. Must not know: widgets, the
terminal, how what is new comes in, what a key does.
Source: spec V3, V4, A4, G6.
"""

from __future__ import annotations

from typing import Final

from pollconsole import sessions
from pollconsole.beats import other_core
from pollconsole.mailbox import CoreRole, Trouble
from pollconsole.state import State, Stays

STALL_S: Final = 5.0
"""A look that comes so late is told."""


class News:
    """What was told so far. *at*: seconds of a monotonic clock."""

    def __init__(self, state: State, at: float) -> None:
        self._state = state
        self._looked = at
        self._audit: Trouble | None = None
        self._sessions = state.board.latest.sessions
        self._attached_to: int | None = None
        """The process whose core this console shows."""

    def look(self, at: float) -> None:
        """A terminal that stops reading stops this loop; whoever comes back must know how old what he saw was."""
        before, self._looked = self._looked, at
        stood = at - before
        if stood > STALL_S:
            self._state.say(f"the screen stood still for {stood:.0f} s; the core went on", "attention")

    def tell(self) -> None:
        """All that changed on the board since the last call."""
        self._tell_audit()
        self._tell_takeover()
        self._tell_sessions()
        self._guide()

    def _tell_audit(self) -> None:
        """Once for each change: the status line has a word for it, this has the reason."""
        trouble = self._state.board.latest.audit
        if trouble == self._audit:
            return
        self._audit = trouble
        key = self._state.keymap.shown("audit")
        if trouble is None:
            self._state.say("the audit is anchored", "good")
        else:
            means = "nothing is sent, nothing granted" if trouble.alarm else "no new authority is given meanwhile"
            said = trouble.why if trouble.why.startswith("unanchored") else f"the audit: {trouble.why}"
            self._state.say(f"{said}; {means}; {key} shows it", "danger" if trouble.alarm else "attention")

    def _tell_takeover(self) -> None:
        """The core that this console showed is gone and this one polls: closing it means another thing from now on."""
        latest = self._state.board.latest
        if latest.role is CoreRole.ATTACHED:
            beats = [beat for beat in latest.beats if beat.kind == "run" and not beat.gone]
            other = other_core(beats, self._state.now())
            self._attached_to = other.pid if other is not None else self._attached_to
        elif latest.role is CoreRole.OWN and self._attached_to is not None:
            pid, self._attached_to = self._attached_to, None
            said = f"the core of run {pid} is gone: this screen polls now; closing it stops the polling"
            self._state.say(said, "attention", Stays.UNTIL_SEEN)

    def _tell_sessions(self) -> None:
        """A session that ended is told (G6): what it let out asks again."""
        before, self._sessions = self._sessions, self._state.board.latest.sessions
        if before is not self._sessions:
            for said in sessions.ended(before, self._sessions, self._state.now().wall):
                self._state.say(said, "attention")

    def _guide(self) -> None:
        """One sentence of a kind of question when its first one comes."""
        guide = self._state.guide
        for reason in {question.reason for question in self._state.board.wanted()} if guide else ():
            if reason in guide:
                self._state.say(guide.pop(reason), "title")
