"""Questions that belong to a credential, what operators said and saw of contracts: the store's part of the promise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.adapters.store.builders import SNAPSHOT, Chain, Seal, at, event, question, submit

from pollcore.adapters.store import InlineStore, opening, schema
from pollcore.adapters.store.credential_rows import Held
from pollcore.facts import (
    Choice,
    ChoiceKind,
    ContractUse,
    CredentialMode,
    Escalation,
    EventName,
    Grant,
    Operator,
    Stale,
    Status,
    StopReason,
)
from pollcore.ports import CredentialAsked, CredentialInfo, Write

INFO = CredentialInfo(name="key", kind="bearer", mode=CredentialMode.PER_CALL, created_at=at().wall)
HELD = Held("credential", "key", b"as it was", b"as it was")


def wish(name: str = "esc-1", after: CredentialMode = CredentialMode.STANDING) -> CredentialAsked:
    """A looser mode of `key` that is asked for."""
    asked = Escalation(
        escalation_id=name,
        operation_id="",
        reason=StopReason.MODE_CHANGE,
        detail=None,
        cause="mode_change:key",
        asked_at=at().wall,
        version=0,
    )
    return CredentialAsked(question=asked, info=INFO, after=after)


def closed(asked: CredentialAsked) -> Escalation:
    return msgspec.structs.replace(asked.question, decided_at=at(5).wall, decision="approve", operator="ann")


def grant(operation_id: str = "", name: str = "g-1", version: int = 1) -> Grant:
    return Grant(
        grant_id=name,
        operation_id=operation_id,
        escalation_id="esc-1",
        version=version,
        choice=Choice(key="1", kind=ChoiceKind.APPROVE, label="approve", grants=True),
        card_digest="d",
        evidence={},
        operator=Operator("ann", "here", "pty"),
        granted_at=at(5).wall,
    )


def told(kind: EventName = EventName.QUESTION_OPENED) -> Any:
    return event("op-none", at(), kind)


async def stored(store: Any) -> None:
    await store.put_document(at(), "credential", "key", b"as it was")


@pytest.mark.rule("G2", "E7")
async def test_one_question_is_open_for_a_credential_and_the_same_wish_finds_it(store: Any) -> None:
    await stored(store)
    first = wish()
    assert await store.ask_credential(at(), first, HELD, told()) == first
    before = await store.change()
    assert await store.ask_credential(at(1), wish("esc-2"), HELD, told()) == first
    assert await store.change() == before
    other = wish("esc-3", CredentialMode.PER_SESSION)
    assert await store.ask_credential(at(2), other, HELD, told()) == other
    assert await store.credential_questions() == (other.question,)
    gone = await store.credential_question("esc-1")
    assert (gone.question.decision, gone.question.decided_at) == ("superseded", at(2).wall)
    assert len(await store.credential_questions(open_only=False)) == 2
    assert (await store.counts())["questions"] == 1


@pytest.mark.rule("G4")
async def test_a_question_is_settled_once_and_changes_only_what_is_as_it_was_read(store: Any) -> None:
    await stored(store)
    asked = await store.ask_credential(at(), wish(), HELD, told())
    moved = Held("credential", "key", b"something else", b"looser")
    with pytest.raises(Stale, match="has changed"):
        await store.settle_credential(at(5), closed(asked), (told(EventName.GRANTED),), grant(), moved)
    assert await store.credential_questions() == (asked.question,)
    assert await store.document("credential", "key") == b"as it was"
    change = Held("credential", "key", b"as it was", b"looser")
    await store.settle_credential(at(5), closed(asked), (told(EventName.GRANTED),), grant(), change)
    assert await store.document("credential", "key") == b"looser"
    assert await store.credential_questions() == ()
    with pytest.raises(Stale, match="decided already"):
        await store.settle_credential(at(6), closed(asked), (), grant(name="g-2"), change)


@pytest.mark.rule("G2")
async def test_a_question_about_a_credential_that_moved_is_not_stored(store: Any) -> None:
    await stored(store)
    with pytest.raises(Stale):
        await store.ask_credential(at(), wish(), Held("credential", "key", None, None), told())
    assert await store.credential_questions() == ()


@pytest.mark.rule("X7", "O6")
async def test_what_a_contract_is_used_as_is_kept_once_with_its_grant(store: Any) -> None:
    made = [await submit(store, name, status=Status.AWAITING_APPROVAL) for name in ("op-1", "op-2", "op-3")]
    for number, (o, use, why) in enumerate(
        zip(
            made,
            (ContractUse.READ_ONLY, ContractUse.READ_ONLY, ContractUse.ACTION),
            (None, None, "decided already"),
            strict=True,
        )
    ):
        after = msgspec.structs.replace(o, status=Status.WAITING, version=o.version + 1)
        given = grant(o.operation_id, f"g-{number}", o.version)
        (found,) = await store.commit_each(
            at(number), [Write(after=after, fence_change=o.change, grant=given, contract_use=use)]
        )
        assert (found is None) is (why is None)
        assert why is None or why in found
    known = (await store.contracts_known([SNAPSHOT.digest, "other"]))[SNAPSHOT.digest]
    assert (known.use, known.decided_by) == (ContractUse.READ_ONLY, "ann@here (pty)")
    assert (await store.contracts_known(["other"]))["other"].use is None
    kinds = [e.event for _, e in await store.events()]
    assert kinds.count(EventName.CONTRACT_DECIDED) == 1
    assert (await store.operation("op-3")).status is Status.AWAITING_APPROVAL


@pytest.mark.rule("G5")
async def test_who_saw_a_contract_first_is_kept(store: Any) -> None:
    assert await store.contract_seen(at(1), "dig", "ann", told(EventName.CONTRACT_SEEN))
    assert not await store.contract_seen(at(2), "dig", "bob", told(EventName.CONTRACT_SEEN))
    known = (await store.contracts_known(["dig"]))["dig"]
    assert (known.seen_by, known.seen_at) == ("ann", at(1).wall)
    assert [e.event for _, e in await store.events()] == [EventName.CONTRACT_SEEN]


@pytest.mark.rule("O6")
async def test_a_store_of_the_first_schema_gets_the_new_tables_and_keeps_its_rows(home: Path) -> None:
    path = str(home / "pollconsole.db")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(schema, "assert_triggers", lambda *_: None)  # those of a later schema are not there yet
        old = opening.open_writer(path, steps={1: schema.STEPS[1]})
    old.execute("INSERT INTO document(kind, name, value) VALUES('credential', 'key', x'7b7d')")
    old.close()
    store = InlineStore(Seal(), Chain(), path)
    assert await store.document("credential", "key") == b"{}"
    assert await store.credential_questions() == ()
    o = await submit(store)
    asked = question(o, at(), reason=StopReason.FIRST_USE)
    await store.commit(at(1), [Write(after=o, fence_change=o.change, open_question=asked)])
    assert (await store.health()).schema == schema.SCHEMA
    await store.close()
