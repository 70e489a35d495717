"""The audit: is it anchored, how does it end, and, on demand, is it whole.

Job: read the chain's state, start a verification beside everything else and show how far it is, export the evidence.
Must not know: what the lines say, how a chain is made or verified. The verification has a thread and a read connection
of its own; this screen only looks at it. Nothing here gives authority.

Source: spec A3, A4, V3; docs/audit.md.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar, Final

from pollconsole import bridge, carry
from pollconsole.core_thread import CoreGone
from pollconsole.draw import Line, text
from pollconsole.screens.audit_lines import MAX_VALUE, NAME, chain_lines, verification_lines
from pollconsole.screens.base import bound
from pollconsole.screens.text import LinesScreen
from pollconsole.state import State
from pollcore.facts import Instant, Moment, PollconsoleError, Refused, iso

READ_EVERY_S: Final = 10.0
"""While the screen is on top; the keyring is asked each time."""
EXPORT_LIMIT_S: Final = 600.0
"""Of one evidence file; a million links take about a minute."""


class AuditScreen(LinesScreen):
    """State, proof and export of the audit."""

    title_words = "audit"
    beside = True
    searched = "the audit"
    indent = NAME + 3
    BINDINGS: ClassVar[list[Any]] = [
        bound("verify", "verify"),
        bound("whole", "whole"),
        bound("export_audit", "export", "sign the head, write the evidence file to HOME/exports"),
        bound("read_anew", "read"),
    ]
    more_keys: ClassVar[tuple[tuple[str, str], ...]] = (
        ("verify", "verify"), ("whole", "whole"), ("export_audit", "export"), ("read_anew", "anew")
    )  # fmt: skip

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self.chain: bridge.ChainState | None = None
        self.trouble: str | None = None
        """Why the state could not be read."""
        self.verification: bridge.Verification | None = None
        self._proved: bridge.Verification | None = None
        """The last one that ended: what stands above it was read anew then, so that both count the same links."""
        self._whole = False
        self._starting = False
        self._read_at = 0.0

    def on_mount(self) -> None:
        self.action_read()

    def on_unmount(self) -> None:
        if self.verification is not None:
            self.verification.cancel()

    def tick(self, now: Moment, changed: bool) -> None:
        found = self.verification
        proved = found is not None and found is not self._proved and not found.running
        if proved or time.monotonic() - self._read_at > READ_EVERY_S:
            self._proved = found if proved else self._proved
            self.action_read()
        super().tick(now, changed)
        if self.verification is not None and self.verification.running and not self.typing:
            self.keys(("Esc", "ends the verification"), (self.key_of("whole"), "whole"))

    # --- reading ------------------------------------------------------------------------------------------------------

    def action_read(self) -> None:
        self._read_at = time.monotonic()
        self.run_worker(self._read(), exclusive=True, group="read")

    async def _read(self) -> None:
        try:
            self.chain = await self.state.link.ask(bridge.chain_state)
            self.trouble = None
        except PollconsoleError as error:
            self.trouble = str(error)
        if self.is_current:
            self.tick(self.state.now(), True)

    # --- drawing ------------------------------------------------------------------------------------------------------

    def content(self) -> list[Line]:
        if self.trouble is not None:
            return [(text(f"the audit cannot be read: {self.trouble}", "danger", MAX_VALUE),), (), *self._proof()]
        if self.chain is None:
            return [(("reading ...", "faint"),)]
        return [*chain_lines(self.chain, self.state, whole=self._whole), (), *self._proof()]

    def _proof(self) -> list[Line]:
        heading: Line = (("is it whole?", "title"),)
        found = self.verification
        if found is None:
            key = self.key_of("verify")
            return [heading, ((f"  {key}", "key"), (" reads every link and says so; polls and screens go on", "muted"))]
        return [heading, *verification_lines(found)]

    # --- keys ---------------------------------------------------------------------------------------------------------

    def action_leave(self) -> None:
        """Esc ends a verification first; the screen, when none is under way or one does not end."""
        if self.verification is not None and self.verification.running and not self.verification.ending:
            self.verification.cancel()
            self.state.say("the verification was ended; nothing is known of the rest", "muted")
            self.tick(self.state.now(), False)
        else:
            super().action_leave()

    def why_not(self, action: str) -> str | None:
        if action == "export" and self.state.read_only:
            return "this console was started to look; 'pollconsole audit export FILE' writes one"
        if action == "verify" and (self._starting or (self.verification is not None and self.verification.running)):
            return "one is under way; Esc ends it"
        return super().why_not(action)

    def action_verify(self) -> None:
        if self.why_not("verify") is not None:
            return
        self._starting = True
        self.run_worker(self._begin(), group="verify")

    async def _begin(self) -> None:
        try:
            may = not self.state.read_only
            begun = await self.state.link.ask(lambda core: bridge.verification(core, may_anchor=may))
        except CoreGone:  # a store that no core opens is the one that must be proved
            begun = bridge.Verification(bridge.store_path(self._home), None, "not asked: no core is open", 0)
        except PollconsoleError as error:
            self.state.say(f"not verified: {error}", "attention")
            return
        finally:
            self._starting = False
        self.verification = begun
        if not self.is_attached:
            begun.cancel()

    @property
    def _home(self) -> Path | None:
        home: Path | None = self.app.home  # type: ignore[attr-defined]
        return home

    def action_whole(self) -> None:
        self._whole = not self._whole
        self.tick(self.state.now(), False)

    def action_export(self) -> None:
        why = self.why_not("export")
        if why is not None:
            self.state.say(why, "held")
            self.tick(self.state.now(), False)
        else:
            self.run_worker(self._export(), exclusive=True, group="export")

    async def _export(self) -> None:
        from pollconsole.bridge import proof

        try:
            target = _target(self._home, self.state.now().wall)
            self.state.say(f"writing {carry.FOLDER}/{target.name} ...", "muted")
            made = await self.state.link.ask(lambda core: proof.export(core, target), limit_s=EXPORT_LIMIT_S, keep=True)
        except PollconsoleError as error:
            self.state.say(f"nothing was exported: {error}", "attention")
            return
        tail, role = ("", "good") if made["signed"] else ("; its last links are under no checkpoint", "attention")
        links = f"{made['links']:,} links exported"
        self.state.written(f"{links} to {target}{tail}", f"{links}{tail}", target, role)


def _target(home: Path | None, at: Instant) -> Path:
    """A new file in the home's folder for exports. Raises Refused."""
    if home is None:
        raise Refused("this console has no home; 'pollconsole audit export FILE' writes one")
    folder = home / carry.FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise Refused(f"{folder}: {error.strerror or type(error).__name__}") from None
    return folder / f"audit-{iso(at).replace(':', '').replace('-', '').partition('.')[0]}Z.jsonl"
