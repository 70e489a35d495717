"""The audit: is it anchored, how does it end, and, on demand, is it whole.

Job: draw the chain's state, start a verification beside everything else and show how far it is, export the evidence.
Must not know: how a chain is made or verified. The verification has a thread and a read connection of its own; this
screen only looks at it. Nothing here gives authority.

Source: spec A3, A4, V3; docs/audit.md.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar, Final

from pollconsole import bridge, carry, proof_words, times, words
from pollconsole.core_thread import CoreGone
from pollconsole.draw import Line, text
from pollconsole.rows import bar
from pollconsole.screens.base import bound
from pollconsole.screens.text import LinesScreen
from pollconsole.state import State
from pollcore.facts import Instant, Moment, PollconsoleError, Refused, iso

NAME: Final = 10
SHORT_HASH: Final = 16
BAR: Final = 24
READ_EVERY_S: Final = 10.0
"""While the screen is on top; the keyring is asked each time."""
EXPORT_LIMIT_S: Final = 600.0
"""Of one evidence file; a million links take about a minute."""
MAX_VALUE: Final = 400
WHOLE: Final = ("intact", "unsigned_tail")
"""Verdicts of a log that nothing is wrong with; one that is written to has a tail that is not signed yet."""


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
        self._whole = False
        self._starting = False
        self._read_at = 0.0

    def on_mount(self) -> None:
        self.action_read()

    def on_unmount(self) -> None:
        if self.verification is not None:
            self.verification.cancel()

    def tick(self, now: Moment, changed: bool) -> None:
        if time.monotonic() - self._read_at > READ_EVERY_S:
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

    def action_verify(self) -> None:
        if self._starting or (self.verification is not None and self.verification.running):
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
        if self.state.read_only:
            self.state.say("this console was started to look; 'pollconsole audit export FILE' writes one", "held")
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
        tail = "" if made["signed"] else "; its last links are under no checkpoint"
        self.state.say(f"{made['links']:,} links exported to {target}{tail}", "good" if made["signed"] else "attention")


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


def chain_lines(chain: bridge.ChainState, state: State, *, whole: bool) -> list[Line]:
    """The state of the chain. *whole*: hashes and the signed note in full."""
    now, exact = state.now().wall, state.exact
    if not chain.begun and chain.alarm is None:
        return [(("no chain has begun: the first operation or console that may write begins it", "muted"),)]
    behind = max(0, chain.links - chain.anchored_to)
    head = chain.head if whole else chain.head[:SHORT_HASH] + ("..." if chain.head else "")
    lines = [_pair("state", *_state(chain, now, exact))]
    anchored = f"link {chain.anchored_to:,} in the {chain.anchor_in}" if chain.anchored_to else "none"
    reaches = f", {_count(behind, 'link')} behind the head" if behind else ", the head"
    if chain.anchored_at is not None:
        reaches += f"; covers all up to {times.when(chain.anchored_at, now, exact=exact)}"
    lines.append(_pair("anchor", (anchored, "text"), (reaches, "muted")))
    lines.append(_pair("head", (f"link {chain.links:,}", "text"), (f"  {head or 'torn by a crash'}", "muted")))
    signed = f", {times.when(chain.signed_at, now, exact=exact)}" if chain.signed_at is not None else ""
    lines.append(
        _pair("signed", (f"up to link {chain.signed_to:,}", "text"),
              (f"{signed}; {_count(chain.checkpoints, 'checkpoint')} in all", "muted"))
    )  # fmt: skip
    if whole:
        lines += [
            _pair("" if number else "note", text(each, "text", MAX_VALUE))
            for number, each in enumerate(chain.note.splitlines())
        ]
    lines.append(
        _pair("holds", (f"{_count(chain.events, 'event')} of the story, {_count(chain.links, 'link')}", "text"))
    )
    since = times.when(chain.epoch_since, now, exact=exact)
    lines.append(
        _pair(
            "epochs",
            (f"{chain.epoch + 1}", "text"),
            (f", the keys in force since {since}, link {chain.epoch_from:,}", "muted"),
        )
    )
    lines.append(_pair("keys in", *_keys_in(chain)))
    lines.append(_pair("log", text(chain.log_id, "muted")))
    lines.append(_pair("public key", text(chain.key or "not read", "text", MAX_VALUE)))
    lines.append(_pair("", ("keep it elsewhere: with it any machine proves an export", "faint")))
    return lines


def _state(chain: bridge.ChainState, now: Instant, exact: bool) -> tuple[tuple[str, str], ...]:
    if chain.alarm is not None:
        return ("DAMAGED", "danger"), text(f": {chain.alarm}. Nothing is sent, nothing granted", "danger", MAX_VALUE)
    if chain.why is not None:
        since = f" since {times.clock(chain.since, now, exact=exact)}" if chain.since is not None else ""
        why = chain.why.partition(": ")[2] if chain.why.startswith("unanchored since") else chain.why
        return (
            (f"UNANCHORED{since}", "attention"),
            text(f": {why}. No new authority is given; polls go on inside what was granted", "attention", MAX_VALUE),
        )
    return (("anchored", "good"),)


def _keys_in(chain: bridge.ChainState) -> tuple[tuple[str, str], ...]:
    if chain.keys_in == "keyring":
        return (("the keyring", "text"),)
    return (text(f"a {chain.keys_in}", "attention"), (": every program of this user can read it", "muted"))


def verification_lines(found: bridge.Verification) -> list[Line]:
    """How far it is, or what it found."""
    rate = f"{found.links:,} of {found.total:,} links, {found.a_second:,.0f} a second"
    if found.running:
        if not found.total:
            return [((f"  {found.links:,} links, {found.a_second:,.0f} a second", "text"),)]
        share = 100 * found.links // found.total
        left = (found.total - found.links) / found.a_second if found.a_second else 0.0
        ends = f", about {words.span(int(left * 1000))} to go" if found.links else ""
        return [(("  ", "text"), *bar(found.links, found.total, BAR), (f" {min(share, 99)} %  {rate}{ends}", "text"))]
    if found.cancelled:
        return [((f"  ended before the end: {rate}. Nothing is known of the rest", "muted"),)]
    if found.report is None:
        return [(text(f"  not verified: {found.error}", "danger", MAX_VALUE),)]
    report = found.report
    good = report["verdict"] in WHOLE
    role = "good" if good else "danger"
    took = f"  {_count(report['links'], 'link')} in {words.span(int(found.seconds * 1000))}"
    lines: list[Line] = [(text(f"  {proof_words.meaning(report)}", role, MAX_VALUE),)]
    lines.append(((took, "muted"), (f", {found.a_second:,.0f} a second", "muted")))
    lines += [(text(f"  {line}", "muted", MAX_VALUE),) for line in proof_words.head_lines(report)[2:]]
    lines += [(text(f"  {line}", "text" if good else role, MAX_VALUE),) for line in proof_words.finding_lines(report)]
    return lines


def _pair(name: str, *spans: tuple[str, str]) -> Line:
    return ((f"{name:<{NAME}}   ", "muted"), *spans)


def _count(number: int, name: str) -> str:
    return f"{number:,} {name}{'s' * (number != 1)}"
