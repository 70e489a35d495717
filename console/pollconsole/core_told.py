"""What the core's thread tells the screen: the newest state into the mailbox, and the same as a line of the log.

Job: say one thing in both places, so that they never differ. Must not know: widgets, the store, when something is told.
"""

from __future__ import annotations

from collections.abc import Callable

from pollconsole.core_log import CoreLog
from pollconsole.mailbox import CoreRole, Mailbox, Trouble
from pollcore.facts import Moment


class Told:
    """Written by the core's thread; mailbox and log are read from any.

    Args:
        now: the core's clock, None before it is known.
    """

    def __init__(self, now: Callable[[], Moment | None]) -> None:
        self.mailbox = Mailbox()
        self.log = CoreLog()
        self._now = now

    def note(self, what: str, text: str, role: str = "text") -> None:
        """One line of the log, unless the last one about *what* said the same."""
        now = self._now()
        self.log.changed(what, None if now is None else now.wall, text, role)

    def role(self, role: CoreRole, text: str) -> None:
        """Who polls, from now on."""
        self.mailbox.put(role=role)
        self.note("role", text)

    def failed(self, text: str) -> None:
        """The core ended, not because it was told to."""
        self.mailbox.health(text)
        self.mailbox.put(role=CoreRole.FAILED, loaded=True)
        self.note("role", f"the core ended: {text}", "danger")

    def health(self, said: str | None) -> None:
        """Why nothing is sent now; None: all well."""
        self.mailbox.health(said)
        self.note("health", f"nothing is sent: {said}" if said else "the store is read", "danger" if said else "text")

    def audit(self, found: tuple[str, bool] | None) -> None:
        """Why the audit is not anchored, and whether its record is known to be damaged; None: it is anchored."""
        self.mailbox.audit(None if found is None else Trouble(*found))
        if found is None:
            self.note("audit", "the audit is anchored")
        else:
            self.note("audit", f"the audit is not anchored: {found[0]}", "danger" if found[1] else "attention")
