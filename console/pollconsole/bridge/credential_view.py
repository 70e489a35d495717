"""Credentials as an operator judges them: what may be known, the sessions that live, the question that is open.

Job: metadata, sessions and questions -> plain records; end sessions. Must not know: secrets, widgets.
Source: spec K1, G2, G6.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollconsole.bridge.keys import credentials
from pollcore.facts import Escalation, Instant

if TYPE_CHECKING:
    from pollcore.assembly import Core

MODE_CAUSE: Final = "mode_change:"


class LiveSession(msgspec.Struct, frozen=True, kw_only=True):
    """One session that can still be used."""

    owner: str
    started_at: Instant
    until: Instant
    calls: int
    calls_left: int
    granted_by: str


class CredentialView(msgspec.Struct, frozen=True, kw_only=True):
    """*info*: the document of `credential list --json`. *question*: a change of its mode that waits for an answer."""

    info: Mapping[str, Any]
    sessions: tuple[LiveSession, ...] = ()
    question: Escalation | None = None

    @property
    def name(self) -> str:
        return str(self.info["name"])


async def credential_views(core: Core) -> list[CredentialView]:
    """All, by name. Raises StoreUnusable."""
    sessions: dict[str, list[LiveSession]] = {}
    for live in await core.actions.sessions():
        made = LiveSession(
            owner=live.owner, started_at=live.started_at, until=live.until, calls=live.calls,
            calls_left=live.calls_left, granted_by=live.granted_by,
        )  # fmt: skip
        sessions.setdefault(live.credential, []).append(made)
    asked = {question.cause.removeprefix(MODE_CAUSE): question for question in await core.store.credential_questions()}
    return [
        CredentialView(info=info, sessions=tuple(sessions.get(info["name"], ())), question=asked.get(info["name"]))
        for info in await credentials(core)
    ]


async def end_sessions(core: Core, name: str) -> int:
    """End every session of a credential, on record; how many. It lowers authority and grants nothing."""
    return int(await core.actions.end_session(name, "ended in the console", str(core.actions.operator())))
