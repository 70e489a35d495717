"""What an author of contracts tries on something real: one request of a job, and the answers that are stored.

Job: core -> documents. Must not know: output, flags. `try_provider` sends one counted request; `impact` sends and
writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollconsole import documents
from pollconsole.bridge.explaining import card_of, explained
from pollconsole.bridge.saved import fault_view
from pollcore.facts import Answer, Fault, Instant, Observation, iso

if TYPE_CHECKING:
    from pollcore.assembly import Core

MAX_BODY: Final = 2_000
"""Characters of an answer's body that are shown."""
MAX_LISTED: Final = 1_000
"""Differences that are listed; all are counted."""
SHOWN_HEADERS: Final = frozenset(
    {"content-type", "date", "retry-after", "location", "operation-location", "azure-asyncoperation", "link"}
)
"""Of an answer: what contracts read most. Cookies and the like stay out."""


def refuse_untriable(core: Core, spec: Mapping[str, Any]) -> None:
    """For a home without a store; see `trying.refuse_untriable`. Raises Refused, NotFound, ContractError."""
    import asyncio

    from pollcore.actions import SubmitSpec

    asyncio.run(core.actions.refuse_untriable(SubmitSpec(**spec)))


async def try_provider(core: Core, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Send one status request for a job that has no operation, and explain its answer.

    Raises Refused (nothing was sent), NotFound, ContractError, StoreUnusable.
    """
    from pollcore.actions import SubmitSpec

    tried = await core.actions.try_provider(SubmitSpec(**spec), core.trial())
    why: dict[str, Any] = {"rule": None, "read": [], "body_fault": None, "observation": None}
    seen: Observation | Fault | None = tried.fault
    memory = tried.judged.memory
    if tried.explained is not None:
        why, seen, memory = explained(tried.explained), tried.explained.observation, tried.explained.memory
    assert seen is not None
    card = card_of(tried.contract, tried.judged, seen, memory, tried.decision, tried.now)
    op = tried.operation
    return {
        "operation_id": op.operation_id,
        "contract": tried.contract.name,
        "status_requests_used": op.status_requests_used,
        "request": {"method": tried.method, "url": tried.url},
        "answer": None if tried.answer is None else _answer(tried.answer),
        "fault": fault_view(tried.fault),
        **why,
        "decision": documents.decision(tried.decision, tried.now.wall),
        "card": card,
    }


def _answer(answer: Answer) -> dict[str, Any]:
    """An answer as it may be shown: links without their query, a bounded body."""
    from pollcore.reading.look import masked

    text = answer.body.decode("utf-8", "replace")
    headers = {name: masked(value) for name, value in answer.headers if name in SHOWN_HEADERS}
    return {
        "status": answer.status,
        "headers": headers,
        "body": masked(text[:MAX_BODY]),
        "body_bytes": len(answer.body),
        "body_cut": len(text) > MAX_BODY,
    }


async def impact(core: Core, text: str, filename: str, since: Instant) -> dict[str, Any]:
    """What the contract *text* would make of answers that are stored of operations under its name.

    Raises ContractError, Refused, SealedUnreadable (the reading key is not at hand), StoreUnusable.
    """
    from pollcore.actions.impact import Counts, differences
    from pollcore.contract import parse

    changed = parse(text, filename)
    counts = Counts()
    listed: list[dict[str, Any]] = []
    async for one in differences(core.store, core.snapshots, changed, since, counts):
        if len(listed) < MAX_LISTED:
            listed.append({**msgspec.structs.asdict(one), "at": iso(one.at)})
    return {
        "contract": changed.name,
        "digest": changed.digest,
        "since": iso(since),
        **msgspec.structs.asdict(counts),
        "more": counts.differences > len(listed),
        "listed": listed,
    }
