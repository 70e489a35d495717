"""The facts beside the record that a card's choices depend on.

Job: ask store, keyring and contract files for one operation or for thousands: what they share (cool-downs, refused
secrets, keyring, contract files) is asked once, what is their own in one read. Must not know: which choice follows.
Source: spec E2, E7, E10, S2, S8, T8, K5; whatever cannot be found out offers nothing more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pollcore import reading
from pollcore.actions import cancels, keyring_look, uses
from pollcore.actions.contract_changes import ContractChange, changes_of
from pollcore.actions.desk import Desk
from pollcore.actions.keyring_look import KeyringLook
from pollcore.contract import Contract, normalise_origin, requests
from pollcore.escalation import ChangedContract, Circumstances, FirstUse
from pollcore.escalation.approvals import RESUBMIT
from pollcore.facts import (
    ActionRecord,
    ContractError,
    Escalation,
    Instant,
    Moment,
    Operation,
    Refused,
    Status,
    StopReason,
    Verdict,
    mask_url,
)
from pollcore.ports import ContractKnown, Cooldown, CredentialInfo, Stored, Turn

READER: Final = "desk"
"""Owner name of turns that only look."""


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that was asked, once; `of` tells what it means for one of the operations."""

    now: Moment
    contracts: Mapping[str, Contract]
    """By digest, as the operations were submitted under them."""
    unreadable: Mapping[str, str]
    """Digest -> why the contract in force cannot be read; its operations have no choices."""
    changes: Mapping[tuple[str, str], ContractChange]
    """By provider and digest in force."""
    cooldowns: Sequence[Cooldown]
    keyring: Mapping[str, KeyringLook]
    known: Sequence[CredentialInfo]
    actions: Mapping[str, Sequence[ActionRecord]]
    answers: Mapping[str, Stored]
    known_contracts: Mapping[str, ContractKnown]
    """By digest: what operators did with the contracts in force and with the files of today."""
    shipped: frozenset[str]
    """Digests whose text ships with this program: nobody has to look at them."""
    near: dict[tuple[str, str | None], str | None]
    """Nearest known states, found once for each contract and unknown state."""

    def of(self, operation: Operation, question: Escalation | None = None) -> Circumstances:
        """What is known beside the record of *operation*. Raises KeyError: its contract is among `unreadable`."""
        contract = self.contracts[operation.contract_digest]
        none = KeyringLook(True) if operation.credential is None else KeyringLook(False)
        keyring = self.keyring.get(operation.credential or "", none)
        # E6: while no final answer was seen the same key goes again, so it must be known
        known_key = operation.status.is_end or operation.submitted.idempotency_key is not None
        can_resubmit, stored = contract.policy.can_resubmit and known_key, operation.submitted.request_fingerprint
        # rendered only where it can be compared with something
        fingerprint = requests.fingerprint(contract, operation.submitted) if can_resubmit and stored else None
        infos = {info.name: info for info in self.known}
        records, last = self.actions.get(operation.operation_id, ()), self.answers.get(operation.operation_id)
        return Circumstances(
            use=uses.use_of(contract, operation, question, infos) if question is not None else None,
            resubmit_use=uses.action_use(contract, operation, RESUBMIT, infos) if can_resubmit else None,
            changed_contract=self._changed(operation),
            other_credentials=self._others(contract, operation),
            secret_rotated=keyring.rotated,
            keyring_reads=keyring.reads,
            keyring_problem=keyring.problem,
            unvalidated_result=operation.result is not None and not operation.result.validated,
            resubmit_possible=can_resubmit,
            fingerprint_matches=fingerprint is not None and fingerprint == stored,
            resubmit_limits=contract.policy.default,
            cooldown_until=_cooldown(operation, self.cooldowns, self.now),
            console_url=requests.console_url(contract, operation.submitted),
            near_match=self._near_match(contract, operation),
            allow_http=contract.allow_http,
            contract_unseen=self._unseen(operation),
            first_use=self._first_use(contract, operation),
            **cancels.facts_of(contract, operation, records, last, infos),
        )

    def _unseen(self, operation: Operation) -> bool:
        """G5: the file that a choice would adopt, else the one in force, was looked at by nobody."""
        change = self.changes.get((operation.submitted.provider, operation.contract_digest))
        digest = operation.contract_digest if change is None else change.today.digest
        known = self.known_contracts.get(digest)
        return digest not in self.shipped and (known is None or known.seen_at is None)

    def _first_use(self, contract: Contract, operation: Operation) -> FirstUse | None:
        """X7: what the contract says of its own status requests; None: enough, nobody is asked."""
        if not contract.asks_first_use:
            return None
        known = self.known_contracts.get(contract.digest)
        return FirstUse(
            observation=contract.observation,
            evidence=contract.evidence,
            tested_live=contract.tested_live if contract.tried else None,
            sources=contract.sources,
            asks_by=_asks_by(contract, operation),
            decided=known.use if known is not None else None,
        )

    def _others(self, contract: Contract, operation: Operation) -> tuple[str, ...]:
        names = [c for c in self.known if c.name != operation.credential]
        if not names:
            return ()
        origin = _origin(contract, operation)
        return tuple(c.name for c in names if origin is not None and origin in c.origins)

    def _changed(self, operation: Operation) -> ChangedContract | None:
        """S8: the contract file of today, with what it makes of the last answer."""
        change = self.changes.get((operation.submitted.provider, operation.contract_digest))
        if change is None:
            return None
        last = self.answers.get(operation.operation_id)
        again = None
        if last is not None and last.envelope:
            again = reading.reread(change.today, operation, last.envelope, self.now, last.last_body)
        # what was not kept whole is a hint that the state is known now; only a new request can say what follows
        decides = again is not None and again.whole
        return ChangedContract(
            digest=change.today.digest,
            diff=change.diff,
            knows_state=again is not None and again.observation.verdict not in (Verdict.UNKNOWN, Verdict.INTEGRATION),
            has_stored_answer=decides,
            reads_as=again.observation if again is not None and decides else None,
            memory=again.memory if again is not None and decides else None,
            policy=change.today.policy,
            origins_added=change.origins_added,
        )

    def _near_match(self, contract: Contract, operation: Operation) -> str | None:
        """S2: the nearest state that the contract knows, for the card of an unknown one."""
        if operation.stop_reason is not StopReason.UNKNOWN_STATE:
            return None
        last = self.answers.get(operation.operation_id)
        if last is None or not last.envelope:
            return None
        key = (operation.contract_digest, operation.last_known_state)
        if key not in self.near:
            self.near[key] = reading.reread(
                contract, operation, last.envelope, self.now, last.last_body
            ).observation.near_match
        return self.near[key]


async def gather(desk: Desk, operations: Iterable[Operation], now: Moment) -> Gathered:
    """Ask everything that the choices of *operations* depend on: a fixed number of reads, however many they are."""
    listed = tuple(operations)
    contracts, unreadable = await _contracts(desk, {op.contract_digest for op in listed})
    changes = await changes_of(desk, listed, contracts)
    # a turn that writes and claims nothing tells what is in force
    held = await desk.store.turn(Turn(now=now, owner=READER))
    ids = [op.operation_id for op in listed]
    answered = [
        op.operation_id
        for op in listed
        if op.stop_reason is StopReason.UNKNOWN_STATE
        or (op.submitted.provider, op.contract_digest) in changes
        or cancels.needs_answer(contracts.get(op.contract_digest), op)
    ]
    return Gathered(
        now=now,
        contracts=contracts,
        unreadable=unreadable,
        changes=changes,
        cooldowns=held.cooldowns,
        # a question about leave to use a credential reads no secret: leave comes first
        keyring=await keyring_look.look(
            desk,
            sorted({op.credential or "" for op in listed if _needs_keyring(op)}),
            held.denials,
            {op.credential or "" for op in listed if op.stop_reason is StopReason.AUTHORIZATION_DENIED},
        ),
        known=tuple(await desk.credentials().known()),
        actions=await desk.store.actions_of(ids),
        answers=await desk.store.last_answers(answered) if answered else {},
        known_contracts=await desk.store.contracts_known(
            [*contracts, *(each.today.digest for each in changes.values())]
        ),
        shipped=_shipped(desk, [*contracts.values(), *(each.today for each in changes.values())]),
        near={},
    )


def _needs_keyring(operation: Operation) -> bool:
    return operation.credential is not None and operation.status is not Status.AWAITING_APPROVAL


async def circumstances(
    desk: Desk, contract: Contract, operation: Operation, question: Escalation | None, now: Moment
) -> Circumstances:
    """Everything beside one record that choices depend on. *contract*: the one in force."""
    found = await gather(desk, (operation,), now)
    return msgspec.structs.replace(found, contracts={operation.contract_digest: contract}).of(operation, question)


async def _contracts(desk: Desk, digests: Iterable[str]) -> tuple[dict[str, Contract], dict[str, str]]:
    found, unreadable = {}, {}
    for digest in sorted(digests):
        try:
            found[digest] = await desk.snapshots.of(digest)
        except ContractError as error:
            unreadable[digest] = str(error)
    return found, unreadable


def _shipped(desk: Desk, contracts: Iterable[Contract]) -> frozenset[str]:
    return frozenset(each.digest for each in contracts if desk.shipped(each.snapshot_text))


def _asks_by(contract: Contract, operation: Operation) -> str | None:
    """`GET https://api.acme.test/v1/jobs/7`, its query masked; None: the address cannot be made yet."""
    try:
        request = requests.status_request(contract, operation, operation.credential)
    except Refused:
        return None
    return f"{request.method} {mask_url(request.url)}"


def _cooldown(operation: Operation, cooldowns: Sequence[Cooldown], now: Moment) -> Instant | None:
    """T8: until when nothing may go to this provider with this account and credential."""
    key = (operation.submitted.provider, operation.submitted.account, operation.credential)
    ends = [c.until_boot - now.boot for c in cooldowns if (c.provider, c.account, c.credential) == key]
    return Instant(now.wall + max(ends)) if ends and max(ends) > 0 else None


def _origin(contract: Contract, operation: Operation) -> str | None:
    try:
        return normalise_origin(requests.status_request(contract, operation, operation.credential).url)
    except Refused:
        return None
