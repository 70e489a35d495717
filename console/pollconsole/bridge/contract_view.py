"""Contracts as an operator judges them: what the file says, whether he has seen it, what open operations run under.

Job: contract files, decisions on their use and stored snapshots -> plain records. Must not know: widgets; how many
operations are open (the screen holds those rows). Only `contract_seen` writes: that somebody looked.
Source: spec S8, G5, X7.
"""

from __future__ import annotations

import asyncio
import difflib
import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollconsole.bridge.contracts import providers
from pollcore.facts import Instant, PollconsoleError

if TYPE_CHECKING:
    from pollcore.assembly import Core

MAX_DIFF: Final = 2_000
"""Lines of one difference; a contract is a few pages."""
MAX_SNAPSHOTS: Final = 20
"""Other contracts of open operations that are compared, of one provider."""
CONTEXT: Final = 2


class ContractView(msgspec.Struct, frozen=True, kw_only=True):
    """One name that can be submitted to."""

    name: str
    contract: str
    source: str
    """`shipped`, `config.toml` (an instance), or the path of a file of the home."""
    title: str | None = None
    error: str | None = None
    """Why it cannot be used."""
    shadows: bool = False
    """A shipped contract of that name is hidden by the file."""
    digest: str | None = None
    base_url: str | None = None
    allow_http: bool = False
    observation: str | None = None
    """What it says a status request is: `read_only`, `action`, or nothing."""
    evidence: str | None = None
    tested_live: str | None = None
    sources: tuple[str, ...] = ()
    use: str | None = None
    """What an operator decided it is, at its first use."""
    decided_at: Instant | None = None
    decided_by: str | None = None
    seen_at: Instant | None = None
    seen_by: str | None = None
    ships: bool = False
    """Its text comes with this program, whatever it is used under."""

    @property
    def kind(self) -> str:
        """Where it comes from, in a word."""
        return {"shipped": "shipped", "config.toml": "instance"}.get(self.source, "home file")

    @property
    def unseen(self) -> bool:
        """Not shipped, and no operator has opened its text yet (G5)."""
        return self.error is None and not self.ships and self.kind != "shipped" and self.seen_at is None


class ContractText(msgspec.Struct, frozen=True):
    """A contract's text, and how it differs from what open operations run under."""

    view: ContractView
    text: str
    differences: tuple[tuple[str, tuple[str, ...]], ...]
    """By digest of the other: lines that begin with `+`, `-` or a space; none: that text is not kept any more."""


async def contract_views(core: Core) -> list[ContractView]:
    """All, by name. Raises StoreUnusable."""
    found = await asyncio.to_thread(_read, core)
    known = await core.store.contracts_known([view.digest for view in found if view.digest is not None])
    return [_known(view, known) for view in found]


async def contract_text(core: Core, name: str, others: Sequence[str]) -> ContractText:
    """The text behind *name* and its differences from the contracts of the digests *others*.

    Raises NotFound, ContractError, Refused, StoreUnusable.
    """
    contract = await asyncio.to_thread(core.contracts.find, name)
    view = next(view for view in await contract_views(core) if view.name == name)
    ours = _whole(contract.snapshot_text, contract.settings)
    differences = []
    for digest in others[:MAX_SNAPSHOTS]:
        kept = await core.store.snapshot(digest)
        lines = () if kept is None else _difference(_whole(kept.text, kept.instance), ours)
        differences.append((digest, lines))
    return ContractText(view, contract.snapshot_text, tuple(differences))


async def contract_seen(core: Core, digest: str) -> None:
    """An operator has the text before him: on record, once (G5). Raises StoreUnusable, Refused."""
    await core.actions.contract_seen(digest)


def _read(core: Core) -> list[ContractView]:
    """Parses what has changed since the last time: for a thread aside."""
    return [_with_contract(core, view) for view in providers(core)]


def _with_contract(core: Core, view: Mapping[str, Any]) -> ContractView:
    names = ("name", "contract", "source", "title", "error", "shadows", "base_url", "allow_http")
    made = ContractView(**{name: view[name] for name in names})
    if made.error is not None:
        return made
    try:
        contract = core.contracts.find(made.name)
    except PollconsoleError as error:  # changed between the two reads
        return msgspec.structs.replace(made, error=str(error))
    return msgspec.structs.replace(
        made,
        digest=contract.digest,
        observation=None if contract.asks_first_use else contract.observation,
        evidence=contract.evidence,
        tested_live=contract.tested_live,
        sources=tuple(contract.sources),
        ships=core.ships(contract.snapshot_text),
    )


def _known(view: ContractView, known: Mapping[str, Any]) -> ContractView:
    found = known.get(view.digest or "")
    if found is None:
        return view
    return msgspec.structs.replace(
        view,
        use=None if found.use is None else found.use.value,
        decided_at=found.decided_at,
        decided_by=found.decided_by,
        seen_at=found.seen_at,
        seen_by=found.seen_by,
    )


def _whole(text: str, settings: Mapping[str, Any]) -> list[str]:
    """Text and settings of the instance: both are under the digest."""
    lines = [f"instance: {name} = {value}" for name, value in sorted(settings.items()) if value not in (None, {}, "")]
    return [*lines, *text.splitlines()]


def _difference(old: list[str], new: list[str]) -> tuple[str, ...]:
    lines = difflib.unified_diff(old, new, lineterm="", n=CONTEXT)
    kept = (line for line in lines if not line.startswith(("---", "+++")))
    return tuple(itertools.islice(kept, MAX_DIFF))
