"""The facts beside the record that a card's choices depend on.

Job: ask store, keyring and contract files, once, for one operation. Must not know: which choice follows from what.
Source: spec E2, E7, S2, S8, T8, K5; whatever cannot be found out offers nothing more.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Final

from pollcore import reading
from pollcore.actions.desk import Desk
from pollcore.contract import Contract, normalise_origin, requests
from pollcore.escalation import ChangedContract, Circumstances
from pollcore.facts import (
    ActionKind,
    ContractError,
    CredentialUnavailable,
    Instant,
    Moment,
    Operation,
    Refused,
    SealedUnreadable,
    StopReason,
    Verdict,
)
from pollcore.ports import Cooldown, Denial, Turn

READER: Final = "desk"
"""Owner name of turns that only look."""


async def circumstances(desk: Desk, contract: Contract, operation: Operation, now: Moment) -> Circumstances:
    """Everything beside the record that choices depend on; whatever cannot be found out offers nothing more."""
    changed = await changed_contract(desk, operation, now)
    actions = await desk.store.actions(operation.operation_id)
    sent = [a for a in actions if a.kind is ActionKind.CANCEL]
    # a turn that writes and claims nothing tells what is in force
    shared = await desk.store.turn(Turn(now=now, owner=READER))
    reads, problem, rotated = await _keyring(desk, operation, shared.denials)
    origin = _origin(contract, operation)
    others = tuple(
        c.name
        for c in await desk.credentials().known()
        if c.name != operation.credential and origin is not None and origin in c.origins
    )
    fingerprint = requests.fingerprint(contract, operation.submitted)
    return Circumstances(
        changed_contract=changed,
        other_credentials=others,
        secret_rotated=rotated,
        keyring_reads=reads,
        keyring_problem=problem,
        unvalidated_result=operation.result is not None and not operation.result.validated,
        resubmit_possible=contract.policy.can_resubmit,
        fingerprint_matches=fingerprint is not None and fingerprint == operation.submitted.request_fingerprint,
        resubmit_limits=contract.policy.default,
        cooldown_until=_cooldown(operation, shared.cooldowns, now),
        cancel_sent_at=sent[-1].at if sent else None,
        cancel_outcome=sent[-1].outcome.value if sent else None,
        console_url=requests.console_url(contract, operation.submitted),
        near_match=await _near_match(desk, contract, operation, now),
        allow_http=contract.allow_http,
    )


def _cooldown(operation: Operation, cooldowns: Sequence[Cooldown], now: Moment) -> Instant | None:
    """T8: until when nothing may go to this provider with this account and credential."""
    key = (operation.submitted.provider, operation.submitted.account, operation.credential)
    ends = [c.until_boot - now.boot for c in cooldowns if (c.provider, c.account, c.credential) == key]
    return Instant(now.wall + max(ends)) if ends and max(ends) > 0 else None


async def _near_match(desk: Desk, contract: Contract, operation: Operation, now: Moment) -> str | None:
    """S2: the nearest state that the contract knows, for the card of an unknown one."""
    if operation.stop_reason is not StopReason.UNKNOWN_STATE:
        return None
    try:
        last = await desk.store.last_answer(operation.operation_id)
    except SealedUnreadable:
        return None
    if last is None or not last.envelope:
        return None
    return reading.reread(contract, operation, last.envelope, now).near_match


def _origin(contract: Contract, operation: Operation) -> str | None:
    try:
        return normalise_origin(requests.status_request(contract, operation, operation.credential).url)
    except Refused:
        return None


async def _keyring(desk: Desk, operation: Operation, denials: Sequence[Denial]) -> tuple[bool, str | None, bool]:
    """Does the keyring read, why not, and did the secret change since it was refused."""
    if operation.credential is None:
        return True, None, False
    try:
        now = await desk.credentials().digest(operation.credential)
    except CredentialUnavailable as error:
        return False, str(error), False
    refused = [d for d in denials if d.credential == operation.credential]
    return True, None, bool(refused) and all(d.digest != now for d in refused)


async def changed_contract(desk: Desk, operation: Operation, now: Moment) -> ChangedContract | None:
    """S8: the contract file of today, when it differs from the snapshot; with what it makes of the last answer."""
    try:
        today = desk.contracts.find(operation.submitted.provider)
        before = await desk.store.snapshot(operation.contract_digest)
    except (ContractError, Refused):
        return None
    if before is None or today.digest == operation.contract_digest:
        return None
    try:
        last = await desk.store.last_answer(operation.operation_id)
    except SealedUnreadable:
        last = None
    reads_as = reading.reread(today, operation, last.envelope, now) if last is not None and last.envelope else None
    return ChangedContract(
        digest=today.digest,
        diff=text_difference(before.text, today.snapshot.text),
        knows_state=reads_as is not None and reads_as.verdict not in (Verdict.UNKNOWN, Verdict.INTEGRATION),
        has_stored_answer=reads_as is not None,
        reads_as=reads_as,
        origins_added=tuple(sorted(set(today.origins) - set((await desk.contract(operation)).origins))),
    )


def text_difference(before: str, after: str) -> str:
    """The changed lines, whole (G4: nothing is cut silently)."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "in force", "file", lineterm="", n=1)
    return "\n".join(lines)
