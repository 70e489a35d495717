"""What every store promises: the same suite over the threaded and the inline one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.adapters.store.builders import (
    ORIGIN,
    SNAPSHOT,
    Chain,
    Seal,
    at,
    claim,
    event,
    operation,
    question,
    result,
    submit,
    take,
)

from pollcore.adapters.store import UNREADABLE
from pollcore.facts import (
    ActionKind,
    ActionOutcome,
    ActionRecord,
    BootMs,
    Choice,
    ChoiceKind,
    DelaySource,
    EventName,
    Grant,
    HttpFact,
    Instant,
    Memory,
    Operation,
    Operator,
    Refused,
    ResultPointer,
    SealedUnreadable,
    Snapshot,
    Stale,
    Status,
    StopDetail,
    StopReason,
    StoreUnusable,
    Submitted,
)
from pollcore.ports import Cooldown, Denial, Filter, OriginState, Pause, Turn, Worker, Write

URL = "https://acme.example/jobs/7?sig=canary"


def grant(o: Operation, name: str = "g-1", version: int | None = None) -> Grant:
    return Grant(
        grant_id=name,
        operation_id=o.operation_id,
        escalation_id=None,
        version=o.version if version is None else version,
        choice=Choice(key="1", kind=ChoiceKind.EXTEND, label="extend 15 min / 4 checks", grants=True, checks=4),
        card_digest="c" * 64,
        evidence={"quiet_ms": 700},
        operator=Operator("ann", "host", "tty1"),
        granted_at=at(5).wall,
    )


def extended(o: Operation, name: str = "g-1") -> Write:
    after = msgspec.structs.replace(
        o,
        version=o.version + 1,
        max_status_requests=o.max_status_requests + 4,
        deadline_at=Instant(o.deadline_at + 900_000),
    )
    events = (event(o.operation_id, at(5), EventName.GRANTED),)
    return Write(after=after, fence_change=o.change, fence_version=o.version, grant=grant(o, name), events=events)


def everything() -> Operation:
    submitted = Submitted(
        provider="acme",
        account="team",
        job_id="job-1",
        base_url="https://acme.example",
        params={"b": 1, "a": ["x", None]},
        status_url=URL,
        expected_states=("done",),
        request_fingerprint="f" * 64,
        idempotency_key="idem-canary",
        caller="agent",
        os_user="ann",
        label="nightly",
    )
    return operation(
        "op-1",
        submitted=submitted,
        status=Status.ESCALATED,
        version=3,
        useful_until=Instant(at().wall + 9_000),
        provider_expires_at=Instant(at().wall + 8_000),
        transport_failures_used=1,
        rate_limited_used=2,
        completed_polls=3,
        rate_limited_in_a_row=1,
        delay_source=DelaySource.PROVIDER_RETRY_AFTER,
        guidance_until=Instant(at().wall + 7_000),
        hold_until=Instant(at().wall + 6_000),
        holds_used=1,
        check_once=True,
        cancel_granted=True,
        extensions_used=2,
        last_known_state="läuft",
        last_http=HttpFact(200, at(1).wall, at(2).wall, "req-1"),
        last_fault="timeout",
        last_fault_at=at(3).wall,
        last_fault_may_have_been_sent=True,
        memory=Memory(polls=2, last_state="läuft", next_url=URL, values={"id": "canary"}),
        stop_reason=StopReason.UNKNOWN_STATE,
        stop_detail=StopDetail.NOT_FOUND,
        stop_explanation="why",
        result=ResultPointer({"url": URL}, "fetch_result", False, ("partial",)),
    )


@pytest.mark.rule("O1", "S7")
async def test_a_record_comes_back_as_it_was_stored(store: Any) -> None:
    made = await store.submit(at(), everything(), SNAPSHOT, [event("op-1", at())])
    assert made == msgspec.structs.replace(everything(), change=made.change)
    assert await store.operation("op-1") == made
    assert await store.snapshot(SNAPSHOT.digest) == SNAPSHOT


@pytest.mark.rule("S7")
async def test_the_same_submission_again_returns_the_first_operation(store: Any) -> None:
    first = await submit(store)
    again = operation("op-1", at(60_000), submitted=msgspec.structs.replace(first.submitted, label="other label"))
    assert await store.submit(at(60_000), again, SNAPSHOT, [event("op-1", at(60_000))]) == first
    assert len(await store.events("op-1")) == 1


@pytest.mark.rule("S7")
async def test_another_submission_under_the_same_id_is_refused(store: Any) -> None:
    await submit(store)
    with pytest.raises(Refused, match="op-1") as refused:
        await submit(store, "op-1", submitted=Submitted(provider="acme", account="team", job_id="another"))
    assert refused.value.code == "id_taken"


@pytest.mark.rule("S7")
async def test_a_second_open_operation_for_one_job_is_refused_and_names_the_first(store: Any) -> None:
    first = await submit(store, "op-1")
    with pytest.raises(Refused, match="op-1") as refused:
        await submit(store, "op-2", submitted=msgspec.structs.replace(first.submitted, request_fingerprint="f" * 64))
    assert refused.value.code == "duplicate_job"
    assert await store.operation("op-2") is None


@pytest.mark.rule("B2")
async def test_a_later_operation_for_a_finished_job_is_stored_and_goes_on_with_the_counters(store: Any) -> None:
    first = await submit(store, "op-1")
    closed = msgspec.structs.replace(first, status=Status.CLOSED, due_boot=None)
    await store.commit(at(1), [Write(after=closed, fence_change=first.change)])
    later = await submit(
        store,
        "op-2",
        submitted=first.submitted,
        status=Status.ESCALATED,
        status_requests_used=12,
        max_status_requests=5,
    )
    assert later.status_requests_used == 12
    assert [o.operation_id for o in await store.by_job("acme", "team", first.submitted.job_id)] == ["op-2", "op-1"]
    assert list(await store.check()) == []


@pytest.mark.rule("O7", "B3")
async def test_a_claim_raises_counter_and_epoch_and_leaves_its_intent_in_one_commit(store: Any) -> None:
    first = await submit(store)
    claimed = await take(store, first, at(10))
    assert claimed is not None
    assert (claimed.operation.epoch, claimed.operation.status_requests_used, claimed.intents) == (1, 1, (1,))
    assert claimed.charged_at == at(10)
    assert await store.operation("op-1") == claimed.operation
    (intent,) = await store.intents("op-1")
    assert (intent.n, intent.epoch, intent.at, intent.boot, intent.step) == (1, 1, at(10).wall, at(10).boot, "status")
    assert [e.event for _, e in await store.events("op-1")] == [EventName.SUBMITTED, EventName.SENT]


@pytest.mark.rule("O3")
async def test_a_claim_on_a_record_that_changed_since_is_not_taken(store: Any) -> None:
    first = await submit(store)
    await store.commit(at(1), [extended(first)])
    assert await take(store, first, at(2)) is None
    assert await store.intents("op-1") == ()


@pytest.mark.rule("B3")
@pytest.mark.parametrize(
    ("changes", "when", "charges"),
    [
        ({"max_status_requests": 1}, 0, 2),
        ({}, 2_400_000, 1),
        ({"deadline_boot": BootMs(1_000_100)}, 100, 1),
        ({"status": Status.HELD}, 0, 1),
        ({"status": Status.ESCALATED}, 0, 1),
    ],
    ids=["budget", "wall deadline", "boot deadline", "held", "escalated"],
)
async def test_nothing_is_claimed_beyond_budget_deadline_or_a_stop(
    store: Any, changes: dict[str, Any], when: int, charges: int
) -> None:
    first = await submit(store, **changes)
    assert await take(store, first, at(when), extra_charges=charges - 1) is None


@pytest.mark.rule("B3", "T9")
async def test_a_deadline_passed_by_the_wall_clock_alone_stops_a_claim(store: Any) -> None:
    first = await submit(store)
    assert await take(store, first, at(10, step=2_399_990)) is None
    assert await take(store, first, at(10, step=2_399_989)) is not None


@pytest.mark.rule("T9")
async def test_a_wall_clock_that_jumped_back_gives_no_more_time(store: Any) -> None:
    first = await submit(store)
    assert await take(store, first, at(2_400_000, step=-3_600_000)) is None


@pytest.mark.rule("B2")
async def test_each_step_of_a_chain_is_charged_before_it_goes_out(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1), extra_charges=2)
    assert claimed is not None
    assert claimed.intents == (1, 2, 3)
    assert claimed.operation.status_requests_used == 3


@pytest.mark.rule("T8")
async def test_concurrency_is_counted_in_the_store(store: Any) -> None:
    a, b, c = [await submit(store, name) for name in ("op-a", "op-b", "op-c")]
    out = await store.turn(
        Turn(now=at(1), owner="w-1", claims=tuple(claim(o, at(1), concurrency=2) for o in (a, b, c)))
    )
    assert [x is not None for x in out.claimed] == [True, True, False]
    assert await take(store, c, at(2), owner="w-2", concurrency=2) is None
    write = result(out.claimed[0].operation, 1, at(3))
    out = await store.turn(Turn(now=at(3), owner="w-1", writes=(write,), claims=(claim(c, at(3), concurrency=2),)))
    assert out.claimed[0] is not None


@pytest.mark.rule("T8")
async def test_requests_a_minute_are_counted_in_the_store(store: Any) -> None:
    a, b = await submit(store, "op-a"), await submit(store, "op-b")
    assert await take(store, a, at(0), per_minute=1) is not None
    assert await take(store, b, at(59_999), owner="w-2", per_minute=1) is None
    assert await take(store, b, at(60_001), owner="w-2", per_minute=1) is not None


@pytest.mark.rule("T8")
async def test_a_cooldown_holds_for_every_operation_of_the_account_and_is_never_shortened(store: Any) -> None:
    first = await submit(store)
    cool = Cooldown(
        provider="acme", account="team", credential="acme-key", until=at(9_000).wall, until_boot=at(9_000).boot
    )
    shorter = msgspec.structs.replace(cool, until=at(100).wall, until_boot=at(100).boot)
    await store.turn(Turn(now=at(1), owner="w-1", cooldowns=(cool,)))
    out = await store.turn(Turn(now=at(2), owner="w-2", cooldowns=(shorter,)))
    assert out.cooldowns == (cool,)
    assert await take(store, first, at(8_999)) is None
    assert await take(store, first, at(9_000)) is not None


@pytest.mark.rule("T8")
async def test_a_cooldown_does_not_hold_for_another_credential(store: Any) -> None:
    first = await submit(store, credential=None)
    cool = Cooldown(
        provider="acme", account="team", credential="acme-key", until=at(9_000).wall, until_boot=at(9_000).boot
    )
    await store.turn(Turn(now=at(1), owner="w-1", cooldowns=(cool,)))
    assert await take(store, first, at(2)) is not None


@pytest.mark.rule("G5")
async def test_a_pause_keeps_claims_out_and_is_not_shortened(store: Any) -> None:
    first = await submit(store)
    for until in (at(9_000).wall, at(50).wall):
        await store.pause(at(1), Pause("acme", None, until), event("op-1", at(1), EventName.PAUSED))
    assert await take(store, first, at(8_999)) is None
    assert await take(store, first, at(9_001)) is not None


@pytest.mark.rule("T11")
async def test_only_the_probe_may_send_to_an_origin_that_is_down(store: Any) -> None:
    probe, other = await submit(store, "op-a"), await submit(store, "op-b")

    def down(name: str, until: int = 60_000) -> OriginState:
        return OriginState(
            origin=ORIGIN,
            account="team",
            faults_in_a_row=3,
            down_since=at().wall,
            probe_operation=name,
            probe_until_boot=at(until).boot,
        )

    out = await store.turn(Turn(now=at(1), owner="w-1", origins=(down("op-a"),), claims=(claim(probe, at(1)),)))
    assert out.claimed[0] is not None
    # a second process that had not seen this elects its own: the one in flight stays the probe
    out = await store.turn(Turn(now=at(2), owner="w-2", origins=(down("op-b"),), claims=(claim(other, at(2)),)))
    assert out.claimed == (None,)
    assert [s.probe_operation for s in out.origins] == ["op-a"]
    up = OriginState(origin=ORIGIN, account="team", faults_in_a_row=0, down_since=None)
    out = await store.turn(Turn(now=at(3), owner="w-1", origins=(up,), claims=(claim(other, at(3)),)))
    assert out.origins == ()
    assert out.claimed[0] is not None


@pytest.mark.rule("H3")
async def test_a_denial_is_remembered_with_the_digest_of_the_refused_secret(store: Any) -> None:
    denial = Denial("acme-key", ORIGIN, "digest-1", at().wall)
    out = await store.turn(Turn(now=at(), owner="w-1", denials=(denial,)))
    assert out.denials == (denial,)
    assert await store.denials() == (denial,)


@pytest.mark.rule("O1", "O2")
async def test_a_result_is_stored_with_its_observation_and_the_lease_ends(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    write = result(claimed.operation, 1, at(500), envelope=b'{"http": 1}')
    write = msgspec.structs.replace(write, stored=msgspec.structs.replace(write.stored, last_body=b"body", draw=0.25))
    out = await store.turn(Turn(now=at(500), owner="w-1", writes=(write,), look=10))
    assert out.taken == (True,)
    found = await store.operation("op-1")
    assert found == msgspec.structs.replace(write.after, change=found.change, lease_owner=None, lease_until=None)
    assert out.due == ()
    assert out.next_due == found.due_boot
    assert await store.last_answer("op-1") == write.stored


@pytest.mark.rule("S9")
async def test_a_final_answer_and_its_result_pointer_are_one_write(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    pointer = ResultPointer({"url": URL})
    write = result(claimed.operation, 1, at(5), status=Status.SUCCEEDED, version=2, result=pointer, due_boot=None)
    assert (await store.turn(Turn(now=at(5), owner="w-1", writes=(write,)))).taken == (True,)
    found = await store.operation("op-1")
    assert (found.status, found.result) == (Status.SUCCEEDED, pointer)


@pytest.mark.rule("O2")
async def test_an_ended_operation_takes_nothing_more(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    write = result(claimed.operation, 1, at(5), status=Status.SUCCEEDED, version=2, due_boot=None)
    await store.turn(Turn(now=at(5), owner="w-1", writes=(write,)))
    done = await store.operation("op-1")
    for status in (Status.WAITING, Status.FAILED):
        with pytest.raises(Stale, match="no way from succeeded"):
            await store.commit(
                at(6), [Write(after=msgspec.structs.replace(done, status=status), fence_change=done.change)]
            )
    assert await take(store, done, at(7)) is None
    again = await store.turn(Turn(now=at(8), owner="w-1", writes=(write,)))
    assert again.taken == (False,)
    assert await store.operation("op-1") == done
    assert (await store.events("op-1"))[-1][1].event is EventName.LATE_RESULT


@pytest.mark.rule("O2")
async def test_one_request_has_one_observation(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    first = msgspec.structs.replace(result(claimed.operation, 1, at(5)), release_lease=False)
    await store.turn(Turn(now=at(5), owner="w-1", writes=(first,)))
    held = await store.operation("op-1")
    again = await store.turn(Turn(now=at(6), owner="w-1", writes=(result(held, 1, at(6)),)))
    assert again.taken == (False,)
    never = await store.turn(Turn(now=at(7), owner="w-1", writes=(result(held, 2, at(7)),)))
    assert never.taken == (False,)
    assert (await store.last_answer("op-1")).answered_at == at(5).wall


@pytest.mark.rule("G4", "E7")
async def test_a_grant_is_used_once_and_only_for_the_version_that_was_shown(store: Any) -> None:
    first = await submit(store)
    await store.commit(at(5), [extended(first)])
    now = await store.operation("op-1")
    assert (now.max_status_requests, now.version) == (16, 2)
    with pytest.raises(Stale):
        await store.commit(at(6), [extended(first)])
    with pytest.raises(Stale, match="used already"):
        await store.commit(at(6), [extended(now)])
    with pytest.raises(Stale, match="version 1"):
        await store.commit(at(6), [msgspec.structs.replace(extended(now, "g-2"), fence_version=1)])
    shown = grant(now, "g-2", version=1)
    with pytest.raises(Stale, match="showed version 1"):
        await store.commit(at(6), [msgspec.structs.replace(extended(now), fence_version=None, grant=shown)])
    assert await store.operation("op-1") == now


@pytest.mark.rule("E7")
async def test_a_question_is_asked_once_and_decided_once(store: Any) -> None:
    o = await submit(store)
    stop = msgspec.structs.replace(o, status=Status.ESCALATED, version=2, due_boot=None)
    ask = Write(after=stop, fence_change=o.change, open_question=question(o, at(1)))
    await store.commit(at(1), [ask])
    o = await store.operation("op-1")
    with pytest.raises(Stale, match="open already"):
        await store.commit(at(2), [Write(after=o, fence_change=o.change, open_question=question(o, at(2), "q-2"))])
    assert await store.questions() == (question(msgspec.structs.replace(o, version=1), at(1)),)
    decided = msgspec.structs.replace(question(o, at(1)), decided_at=at(3).wall, decision="close", operator="ann")
    close = Write(
        after=msgspec.structs.replace(o, status=Status.CLOSED, version=3), fence_change=o.change, close_question=decided
    )
    await store.commit(at(3), [close])
    with pytest.raises(Stale):
        await store.commit(at(4), [close])
    assert await store.questions() == ()
    assert [q.decision for q in await store.questions("op-1", open_only=False)] == ["close"]


@pytest.mark.rule("E7")
async def test_a_real_stop_takes_an_open_question_over(store: Any) -> None:
    o = await submit(store)
    asked = question(o, at(1), "q-ask", StopReason.EXTENSION_REQUESTED)
    await store.commit(at(1), [Write(after=o, fence_change=o.change, open_question=asked)])
    o = await store.operation("op-1")
    stop = msgspec.structs.replace(o, status=Status.ESCALATED, version=2, due_boot=None)
    write = Write(after=stop, fence_change=o.change, open_question=question(o, at(2), "q-stop"))
    assert (await store.turn(Turn(now=at(2), owner="w-1", writes=(write,)))).taken == (True,)
    assert [q.escalation_id for q in await store.questions("op-1")] == ["q-stop"]
    closed = {q.escalation_id: q.decision for q in await store.questions("op-1", open_only=False)}
    assert closed == {"q-ask": "superseded", "q-stop": None}


@pytest.mark.rule("O6")
async def test_a_commit_is_all_or_nothing(store: Any) -> None:
    a, b = await submit(store, "op-a"), await submit(store, "op-b")
    with pytest.raises(Stale, match="op-b"):
        await store.commit(at(1), [extended(a), msgspec.structs.replace(extended(b, "g-2"), fence_change=99)])

    def refuse() -> None:
        raise Stale("not anchored")

    with pytest.raises(Stale, match="not anchored"):
        await store.commit(at(1), [extended(a)], refuse)
    assert await store.operation("op-a") == a
    assert len(await store.events("op-a")) == 1


@pytest.mark.rule("E6")
async def test_a_resubmit_closes_the_old_and_inserts_the_new_in_one_transaction(store: Any) -> None:
    old = await submit(store, "op-1", status=Status.ESCALATED)
    close = Write(after=msgspec.structs.replace(old, status=Status.CLOSED, version=2), fence_change=old.change)
    new = operation("op-2", submitted=msgspec.structs.replace(old.submitted, resubmit_of="op-1"))
    made = await store.submit(at(1), new, SNAPSHOT, [event("op-2", at(1))], None, close)
    assert made.submitted.resubmit_of == "op-1"
    assert (await store.operation("op-1")).status is Status.CLOSED
    with pytest.raises(Stale):
        await store.submit(at(2), operation("op-3"), SNAPSHOT, [], None, close)
    assert await store.operation("op-3") is None


@pytest.mark.rule("O6")
async def test_when_the_audit_cannot_be_written_nothing_happens(store: Any, chain: Chain) -> None:
    first = await submit(store)
    chain.fails = ValueError("canary")
    with pytest.raises(StoreUnusable, match="audit row") as told:
        await take(store, first, at(1))
    assert "canary" not in str(told.value)
    chain.fails = None
    assert await store.operation("op-1") == first
    assert await store.intents("op-1") == ()


@pytest.mark.rule("O6")
async def test_nothing_of_what_was_undone_is_remembered(store: Any, chain: Chain) -> None:
    a, b = await submit(store, "op-a"), await submit(store, "op-b")
    chain.fails = ValueError()
    with pytest.raises(StoreUnusable):
        await take(store, a, at(1), owner="w-undone")
    chain.fails = None
    for o, owner in ((a, "w-other"), (b, "w-undone")):
        assert await take(store, o, at(2), owner=owner) is not None
        assert (await store.operation(o.operation_id)).lease_owner == owner


@pytest.mark.rule("A3")
async def test_every_event_has_its_link_in_the_same_transaction(store: Any) -> None:
    await take(store, await submit(store), at(1))
    links = await store.audit_links()
    assert [k.seq for k in links] == [seq for seq, _ in await store.events()]
    assert all(k.blob == msgspec.json.encode(e) for k, (_, e) in zip(links, await store.events(), strict=True))


@pytest.mark.rule("A1", "A2")
async def test_the_story_of_one_operation_is_its_own_events_in_order(store: Any) -> None:
    a, b = await submit(store, "op-a"), await submit(store, "op-b")
    for o in (a, b):
        await take(store, o, at(1))
    await store.record(at(2), [event("op-a", at(2), EventName.GRANT_REFUSED, notes=("shown", "stale"))])
    story = await store.events("op-a")
    assert [e.event.value for _, e in story] == ["submitted", "sent", "grant_refused"]
    assert {e.operation_id for _, e in story} == {"op-a"}
    assert story[-1][1].notes == ("shown", "stale")
    assert await store.events("op-a", after=story[1][0]) == story[2:]
    assert await store.events("op-a", limit=1) == story[:1]
    assert len(await store.events()) == 5


@pytest.mark.rule("K4")
async def test_what_may_hold_a_secret_is_sealed_and_the_rest_is_readable_without_the_key(
    store: Any, seal: Seal
) -> None:
    made = await store.submit(at(), everything(), SNAPSHOT, [])
    seal.readable = False
    # what was read before may be remembered: read as a process without the key does
    if hasattr(store, "turns"):
        store.turns.known.forget()
    found = await store.operation("op-1")
    assert found.submitted.status_url == UNREADABLE
    assert found.submitted.idempotency_key == UNREADABLE
    assert found.memory == Memory(polls=2, last_state="läuft", next_url=UNREADABLE)
    assert found.result == ResultPointer({UNREADABLE: True}, "fetch_result", False, ("partial",))
    assert (found.last_known_state, found.status_requests_used) == ("läuft", 0)
    held = msgspec.structs.replace(found, status=Status.HELD, version=4)
    await store.commit(at(1), [Write(after=held, fence_change=found.change)])
    seal.readable = True
    after = await store.operation("op-1")
    assert (after.memory, after.result, after.submitted) == (made.memory, made.result, made.submitted)
    assert after.status is Status.HELD


@pytest.mark.rule("K4")
async def test_an_envelope_that_cannot_be_opened_says_so(store: Any, seal: Seal) -> None:
    claimed = await take(store, await submit(store), at(1))
    write = result(claimed.operation, 1, at(2), envelope=b"{}")
    await store.turn(Turn(now=at(2), owner="w-1", writes=(write,)))
    seal.readable = False
    with pytest.raises(SealedUnreadable):
        await store.last_answer("op-1")


@pytest.mark.rule("O6")
async def test_text_that_no_encoding_holds_does_not_stop_the_others(store: Any) -> None:
    claimed = await take(store, await submit(store), at(1))
    hostile = "bad \ud800 \x00 state"
    write = result(
        claimed.operation, 1, at(2), state=hostile, memory=Memory(last_state=hostile, values={hostile: hostile})
    )
    assert (await store.turn(Turn(now=at(2), owner="w-1", writes=(write,)))).taken == (True,)
    assert (await store.operation("op-1")).last_known_state == "bad \\ud800 \x00 state"


@pytest.mark.rule("T6")
async def test_the_look_gives_what_is_due_in_order_and_when_the_next_one_is(store: Any) -> None:
    for name, due in (("op-c", 300), ("op-a", 100), ("op-b", 200), ("op-d", 900)):
        await submit(store, name, due_boot=at(due).boot)
    out = await store.turn(Turn(now=at(300), owner="w-1", look=10))
    assert [o.operation_id for o in out.due] == ["op-a", "op-b", "op-c"]
    assert out.next_due == at(900).boot
    few = await store.turn(Turn(now=at(300), owner="w-1", look=2))
    assert [o.operation_id for o in few.due] == ["op-a", "op-b"]
    assert few.next_due == at(300).boot
    none = await store.turn(Turn(now=at(300), owner="w-1"))
    assert (none.due, none.next_due) == ((), at(100).boot)
    assert none.next_deadline == at(2_400_000).wall


@pytest.mark.rule("T6", "T9")
async def test_a_wall_clock_that_jumped_past_the_deadline_makes_an_operation_due(store: Any) -> None:
    first = await submit(store, due_boot=at(100_000).boot)
    assert (await store.turn(Turn(now=at(10), owner="w-1", look=5))).due == ()
    out = await store.turn(Turn(now=at(10, step=2_500_000), owner="w-1", look=5))
    assert out.due == (first,)


@pytest.mark.rule("O2")
async def test_a_leased_operation_is_never_due(store: Any) -> None:
    await take(store, await submit(store), at(1))
    out = await store.turn(Turn(now=at(2), owner="w-2", look=5))
    assert (out.due, out.next_due) == ((), None)


@pytest.mark.rule("V1")
async def test_lists_are_filtered_and_newest_change_first(store: Any) -> None:
    a, b, c = [await submit(store, name) for name in ("op-a", "op-b", "op-c")]
    await store.commit(at(1), [Write(after=msgspec.structs.replace(a, status=Status.HELD), fence_change=a.change)])

    async def names(**fields: Any) -> list[str]:
        return [o.operation_id for o in await store.operations(Filter(**fields))]

    assert await names() == ["op-a", "op-c", "op-b"]
    assert await names(limit=1) == ["op-a"]
    assert await names(statuses=(Status.HELD,)) == ["op-a"]
    assert await names(provider="nobody") == []
    assert await names(changed_since=b.change) == ["op-a", "op-c"]
    assert await names(since=at(1).wall) == []
    assert await store.counts() == {"waiting": 2, "held": 1, "questions": 0}
    assert c.change < await store.change()


@pytest.mark.rule("O4")
async def test_every_write_raises_the_change_number_and_wakes_those_who_wait(store: Any) -> None:
    before = await store.change()
    await submit(store)
    after = await store.wait_for_change(before, 5)
    assert after > before
    assert await store.wait_for_change(after, 0) == after


@pytest.mark.rule("O6")
async def test_a_look_commits_nothing(store: Any) -> None:
    await submit(store, due_boot=at(900).boot)
    before = await store.change()
    out = await store.turn(Turn(now=at(1), owner="w-1", look=5))
    assert out.change == before == await store.change()


@pytest.mark.rule("O5")
async def test_an_action_is_intended_first_and_its_outcome_is_settled_once(store: Any) -> None:
    o = await submit(store)
    fetch = ActionRecord(
        action_id="a-1",
        operation_id="op-1",
        kind=ActionKind.FETCH_RESULT,
        outcome=ActionOutcome.INTENDED,
        at=at(1).wall,
    )
    outcomes = []
    for outcome in (ActionOutcome.INTENDED, ActionOutcome.UNKNOWN, ActionOutcome.DONE):
        o = await store.operation("op-1")
        answered = None if outcome is ActionOutcome.INTENDED else at(2).wall
        action = msgspec.structs.replace(fetch, outcome=outcome, answered_at=answered)
        await store.commit(at(2), [Write(after=o, fence_change=o.change, action=action)])
        outcomes.append((await store.actions("op-1"))[0].outcome)
    assert outcomes == [ActionOutcome.INTENDED, ActionOutcome.UNKNOWN, ActionOutcome.UNKNOWN]


@pytest.mark.rule("O5")
async def test_an_action_that_nobody_answered_is_unknown_until_a_late_answer_tells(store: Any) -> None:
    await submit(store)
    lost = ActionRecord(
        action_id="a-1",
        operation_id="op-1",
        kind=ActionKind.CANCEL,
        outcome=ActionOutcome.INTENDED,
        at=at(1).wall,
    )
    outcomes = []
    for outcome in (ActionOutcome.INTENDED, ActionOutcome.UNKNOWN, ActionOutcome.DONE, ActionOutcome.REFUSED):
        o = await store.operation("op-1")
        answered = at(3).wall if outcome in (ActionOutcome.DONE, ActionOutcome.REFUSED) else None
        action = msgspec.structs.replace(lost, outcome=outcome, answered_at=answered)
        await store.commit(at(2), [Write(after=o, fence_change=o.change, action=action)])
        outcomes.append((await store.actions("op-1"))[0].outcome)
    assert outcomes == [ActionOutcome.INTENDED, ActionOutcome.UNKNOWN, ActionOutcome.DONE, ActionOutcome.DONE]


@pytest.mark.rule("O8")
async def test_heartbeats_are_kept_and_raise_no_change(store: Any) -> None:
    beat = Worker(
        owner="w-1",
        pid=7,
        host="h",
        kind="run",
        started_at=at().wall,
        beat_at=at(5).wall,
        beat_boot=at(5).boot,
        boot_id="boot-1",
    )
    await submit(store)
    before = await store.change()
    await store.turn(Turn(now=at(5), owner="w-1", beat=beat))
    assert await store.workers() == (beat,)
    assert await store.change() == before


@pytest.mark.rule("S8")
async def test_another_contract_is_adopted_only_if_its_snapshot_is_kept(store: Any) -> None:
    o = await submit(store)
    other = Snapshot(digest="e" * 64, name="acme", text="new")
    adopted = Write(after=msgspec.structs.replace(o, contract_digest=other.digest, version=2), fence_change=o.change)
    with pytest.raises(Refused, match="snapshot"):
        await store.commit(at(1), [adopted])
    await store.keep_snapshot(at(1), other)
    await store.commit(at(1), [adopted])
    assert (await store.operation("op-1")).contract_digest == other.digest


@pytest.mark.rule("B1")
async def test_requests_of_the_last_hour_are_counted_over_operations(store: Any) -> None:
    a, b = await submit(store, "op-a"), await submit(store, "op-b")
    await take(store, a, at(0))
    await take(store, b, at(1_000))
    assert await store.load_of(None, a.submitted.account, at(0).wall) == (2, 2)
    assert await store.load_of(None, a.submitted.account, at(1).wall) == (2, 1)
    assert await store.load_of(None, "another", at(0).wall) == (0, 0)
    assert await store.load_of("somebody", a.submitted.account, at(0).wall) == (0, 0)


@pytest.mark.rule("O6")
async def test_small_records_of_other_adapters_are_kept_by_kind_and_name(store: Any) -> None:
    await store.put_document(
        at(), "credential", "acme-key", b"{}", [event("op-none", at(), EventName.CREDENTIAL_CHANGED)]
    )
    assert await store.documents("credential") == {"acme-key": b"{}"}
    await store.put_document(at(), "credential", "acme-key", None)
    assert await store.documents("credential") == {}


@pytest.mark.rule("T9")
async def test_after_another_boot_times_are_counted_from_the_wall_again(store: Any) -> None:
    await submit(store, due_boot=at(60_000).boot, next_poll_at=at(60_000).wall)
    await store.turn(
        Turn(
            now=at(),
            owner="w-1",
            cooldowns=(
                Cooldown(provider="p", account="a", credential=None, until=at(50_000).wall, until_boot=at(50_000).boot),
            ),
        )
    )
    now = at(30_000, "boot-2")
    now = msgspec.structs.replace(now, boot=BootMs(500))
    out = await store.turn(Turn(now=now, owner="w-2", look=5))
    assert out.due == ()
    assert out.next_due == 500 + 30_000
    found = await store.operation("op-1")
    assert (found.boot_id, found.deadline_boot) == ("boot-2", 500 + 2_370_000)
    assert [c.until_boot for c in out.cooldowns] == [500 + 20_000]
    assert found in await store.operations(Filter(changed_since=1))


async def test_a_closed_store_says_so(store: Any) -> None:
    await store.close()
    with pytest.raises(StoreUnusable, match="closed"):
        await store.turn(Turn(now=at(), owner="w-1"))
    await store.close()
