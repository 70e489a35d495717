"""One status request for many operations, whole: the loop, a store, a provider on loopback, a clock that jumps."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.actions import lowering
from pollcore.adapters.credential_ops import change_mode
from pollcore.controller import sharing
from pollcore.controller.company import waits_until
from pollcore.controller.exchange import Exchanger, Out
from pollcore.facts import (
    MINUTE,
    SECOND,
    Answer,
    BootMs,
    ChoiceKind,
    CredentialMode,
    EventName,
    Fault,
    Instant,
    Moment,
    Operation,
    Status,
    StopReason,
    StoreUnusable,
    Submitted,
)
from pollcore.ports import Turn, TurnOutcome
from tests.controller.bank import DONE, LOST, RUNNING, refuses, says
from tests.controller.batch_house import registry, rows, shared_house
from tests.controller.house import House, until
from tests.controller.test_approvals import ACTION, PER_CALL, PER_SESSION, Running, all_asked, run_for

FAILED = says("failed", error={"code": "E7"})
ACCOUNT_SCOPE = '[[caps.scopes]]\nscope = "account"\nrequests = 2\nper = "1m"\n'


def made_operation(**changes: Any) -> Operation:
    """A waiting record of no store."""
    fields: dict[str, Any] = {
        "operation_id": "op-1",
        "submitted": Submitted(provider="acme", account="a", job_id="j"),
        "status": Status.WAITING,
        "contract_digest": "d",
        "started_at": Instant(0),
        "submitted_at": Instant(0),
        "max_status_requests": 9,
        "max_transport_failures": 3,
        "max_rate_limited": 3,
    }
    return Operation(**{**fields, **changes})


async def hand_over(h: House, count: int, *answers: dict[str, Any], **spec: Any) -> list[str]:
    names = [f"j{n:03d}" for n in range(count)]
    for name in names:
        await h.submit(name, *answers, credential="key", **spec)
    return names


async def first_answer(h: House) -> None:
    """The loop until the first answer is recorded, and no further."""
    while not registry(h).asked:
        await h.run(500)
    await h.run(100)


def asked_of(h: House, job: str) -> list[tuple[str, ...]]:
    return [ids for ids in registry(h).asked if job in ids]


@pytest.mark.slow
@pytest.mark.rule("B2", "B3", "O7", "S9")
async def test_250_operations_need_few_requests_and_each_ends_as_its_own_entry_says(tmp_path: Path) -> None:
    async with shared_house(tmp_path, most=100) as h:
        names = await hand_over(h, 250, RUNNING, DONE)
        for name in names[::10]:
            h.bank.scripts[name] = [RUNNING, FAILED]
        await h.run(30 * MINUTE)
        asked = registry(h).asked
        assert sum(len(ids) for ids in asked) == 500
        assert max(len(ids) for ids in asked) == 100
        # each round needs three at least; who was asked first may go with the last of the round before
        assert 5 <= len(asked) <= 7
        for name in names:
            found = await h.op(f"op-{name}")
            wanted = Status.FAILED if name in names[::10] else Status.SUCCEEDED
            assert (found.status, found.status_requests_used) == (wanted, 2), name
            assert len(asked_of(h, name)) == 2
        assert found.result is not None
        assert found.result.fields["url"] == DONE["body"]["result"]["url"]
        assert list(await h.core.store.check()) == []
        stored = await h.core.store.intents("op-j007")
        assert [one.n for one in stored] == [1, 2]
        # a row for each request, with the charges of those that went with it
        others = [await h.core.store.intents(f"op-{name}") for name in names]
        charged = [intent.request for intents in others for intent in intents]
        assert (len(charged), len(set(charged))) == (500, len(asked))
        polled = await h.events(EventName.POLLED, "op-j000")
        assert any(note.startswith("one request with ") for note in polled[0].notes)


@pytest.mark.rule("A1", "S9")
async def test_a_long_answer_about_many_is_kept_by_those_alone_whose_wait_stops_on_it(tmp_path: Path) -> None:
    long = says("running", text="x" * 1_000)
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 8, long, DONE)
        h.bank.scripts["j003"] = [says("a-state-nobody-knows")]
        await first_answer(h)
        assert len(registry(h).asked[0]) == len(names)
        assert rows(h, "SELECT o.id FROM last_body b JOIN operation o ON o.op=b.op") == [("op-j003",)]
        for name in names:
            answer = await h.core.store.last_answer(f"op-{name}")
            assert answer is not None
            assert name in answer.envelope.decode()


@pytest.mark.rule("B2", "X5")
@pytest.mark.parametrize("status", [400, 404, 410, 413, 414, 422, 200, 302])
async def test_an_answer_that_speaks_of_no_single_job_ends_nothing_and_each_is_asked_alone_next(
    status: int, tmp_path: Path
) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 4, DONE)

        def whole(ids: tuple[str, ...]) -> dict[str, Any] | None:
            return refuses(status, error="j002 is no id") if "j002" in ids and (len(ids) > 1 or status != 200) else None

        registry(h).whole = whole
        await first_answer(h)
        assert [sorted(ids) for ids in registry(h).asked] == [["j000", "j001", "j002", "j003"]]
        for name in ("j000", "j002"):
            waits = await h.op(f"op-{name}")
            assert (waits.status, waits.status_requests_used, waits.memory.alone) == (Status.WAITING, 1, True)
            assert waits.transport_failures_used == waits.rate_limited_used == 0
            (told,) = await h.events(EventName.POLLED, f"op-{name}")
            assert any("speaks of none of them" in note for note in told.notes)
        # a restart keeps it
        async with h.open() as again:
            await h.run(30 * MINUTE, again)
        assert sorted(registry(h).asked[1:])[:4] == [("j000",), ("j001",), ("j002",), ("j003",)]
        for name in ("j000", "j001", "j003"):
            assert (await h.op(f"op-{name}")).status is Status.SUCCEEDED
        poisoned = await h.op("op-j002")
        if status == 200:
            assert poisoned.status is Status.SUCCEEDED
        else:
            assert poisoned.status in (Status.ESCALATED, Status.EXPIRED)
            assert poisoned.stop_reason in (StopReason.INTEGRATION_FAILURE, StopReason.JOB_EXPIRED)
        assert list(await h.core.store.check()) == []


@pytest.mark.rule("B2")
async def test_after_an_ordinary_answer_alone_it_shares_again(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 3, RUNNING, RUNNING, DONE)
        registry(h).whole = lambda ids: refuses(400) if len(registry(h).asked) == 1 else None
        await h.run(30 * MINUTE)
        sizes = [len(ids) for ids in registry(h).asked]
        assert sizes == [3, 1, 1, 1, 3, 3]
        assert [(await h.op(f"op-j00{n}")).status for n in range(3)] == [Status.SUCCEEDED] * 3


@pytest.mark.rule("X5", "B2")
async def test_a_body_beyond_its_limit_sets_all_of_them_apart(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 3, DONE)
        registry(h).whole = lambda ids: refuses(200, blob="x" * 9_000_000) if len(ids) > 1 else None
        await first_answer(h)
        first = await h.op("op-j000")
        assert (first.status, first.last_fault, first.memory.alone) == (Status.WAITING, "too_large", True)
        await h.run(30 * MINUTE)
        assert [len(ids) for ids in registry(h).asked] == [3, 1, 1, 1]
        assert [(await h.op(f"op-j00{n}")).status for n in range(3)] == [Status.SUCCEEDED] * 3


@pytest.mark.rule("X5", "B2")
async def test_where_an_answer_for_many_is_too_large_fewer_go_together_from_then_on(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 12, *[RUNNING] * 4, DONE)
        registry(h).whole = lambda ids: refuses(200, blob="x" * 300_000) if len(ids) > 6 else None
        await h.run(39 * MINUTE)
        sizes = [len(ids) for ids in registry(h).asked]
        assert sizes[0] == 12
        assert sizes[1:13] == [1] * 12
        assert max(sizes[1:]) == 6
        assert {(await h.op(f"op-j{n:03d}")).status for n in range(12)} == {Status.SUCCEEDED}
        assert {(await h.op(f"op-j{n:03d}")).status_requests_used for n in range(12)} == {6}


@pytest.mark.rule("T8", "T7", "H5")
async def test_a_429_cools_all_of_them_down_once_and_each_spends_its_own(tmp_path: Path) -> None:
    async with shared_house(tmp_path, most=4) as h:
        await hand_over(h, 6, DONE)
        registry(h).whole = lambda _: refuses(429, {"Retry-After": "120"}) if len(registry(h).asked) == 1 else None
        await h.run(30 * MINUTE)
        asked, at = registry(h).asked, registry(h).asked_at
        ends = at[0] + 120 * SECOND
        # the second request was due with the first: its two wait with all
        assert len(asked[0]) == 4
        assert all(boot >= ends for ids, boot in zip(asked[1:], at[1:], strict=True) if set(ids) & set(asked[0]))
        for name in asked[0]:
            found = await h.op(f"op-{name}")
            assert (found.rate_limited_used, found.status_requests_used, found.status) == (1, 2, Status.SUCCEEDED)


@pytest.mark.rule("T11", "B4")
async def test_an_origin_learns_once_of_a_request_whatever_number_of_operations_it_was_for(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 5, LOST)
        registry(h).whole = lambda _: LOST
        await first_answer(h)
        ((faults,),) = rows(h, "SELECT faults_in_a_row FROM origin_state")
        assert faults == 1
        assert {(await h.op(f"op-j00{n}")).transport_failures_used for n in range(5)} == {1}
        await h.run(60 * SECOND)
        # two faults of requests for several operations: the origin is asked by one, and then it is down
        ((down,),) = rows(h, "SELECT down_since FROM origin_state")
        assert down is not None
        assert [len(ids) for ids in registry(h).asked][:4] == [5, 5, 1, 1]


@pytest.mark.rule("B4", "X6")
async def test_a_401_stops_each_of_them_and_the_secret_is_refused_once(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 3, DONE)
        registry(h).whole = lambda _: refuses(401)
        await h.run(MINUTE)
        assert len(registry(h).asked) == 1
        found = [await h.op(f"op-j00{n}") for n in range(3)]
        assert {one.stop_reason for one in found} == {StopReason.AUTHORIZATION_DENIED}
        assert rows(h, "SELECT count(*) FROM denial") == [(1,)]


@pytest.mark.rule("O7", "S1")
async def test_one_alone_is_asked_by_the_ordinary_request_and_waits_for_nobody(tmp_path: Path) -> None:
    async with shared_house(tmp_path, gather="60s") as h:
        due = (await h.submit("only", DONE)).due_boot
        await h.submit("other", DONE, credential="key")
        await h.core.actions.lower("op-other", ChoiceKind.HOLD, "not now", "ops")
        await h.run(MINUTE)
        assert due is not None
        assert 0 <= registry(h).asked_at[0] - due < 100
        assert [seen.path for seen in h.bank.status_seen] == ["/v1/jobs/only"]
        assert (await h.op("op-only")).status is Status.SUCCEEDED
        (told,) = await h.events(EventName.POLLED, "op-only")
        assert not any("one request" in note for note in told.notes)


@pytest.mark.rule("H4", "S6")
async def test_an_absent_entry_is_not_found_by_its_own_history_and_touches_nobody_else(tmp_path: Path) -> None:
    more = ("[schedule]", "[not_found]\ngrace_seconds = 15\n[schedule]")
    async with shared_house(tmp_path, more) as h:
        await hand_over(h, 3, RUNNING, DONE)
        del h.bank.scripts["j001"]
        await h.run(30 * MINUTE)
        lost = await h.op("op-j001")
        assert (lost.status, lost.stop_reason) == (Status.ESCALATED, StopReason.INTEGRATION_FAILURE)
        assert [(await h.op(f"op-j00{n}")).status for n in (0, 2)] == [Status.SUCCEEDED] * 2


@pytest.mark.rule("H4", "S9", "B2")
async def test_a_list_that_ends_early_ends_nobody_and_makes_no_request_smaller(tmp_path: Path) -> None:
    expires = ("[schedule]", '[not_found]\nonce_seen = "expired"\n[schedule]')
    async with shared_house(tmp_path, expires) as h:
        names = await hand_over(h, 6, RUNNING, RUNNING, RUNNING, DONE)

        def page(ids: tuple[str, ...]) -> dict[str, Any] | None:
            if len(registry(h).asked) != 2:
                return None
            return {"status": 200, "headers": {}, "body": {"jobs": [registry(h)._entry(one) for one in ids[:2]]}}

        registry(h).whole = page
        await h.run(30 * MINUTE)
        assert {(await h.op(f"op-{name}")).status for name in names} == {Status.SUCCEEDED}
        asked = registry(h).asked
        assert [len(ids) for ids in asked[:2]] == [6, 6]
        assert sum(len(ids) == 1 for ids in asked) >= 4
        assert max(len(ids) for ids in asked[2:]) > 1


@pytest.mark.slow
@pytest.mark.rule("T6", "O1")
async def test_what_becomes_due_one_by_one_does_not_load_all_who_wait_each_time(tmp_path: Path) -> None:
    async with shared_house(tmp_path, most=1_000) as h:
        await hand_over(h, 250, RUNNING)
        real, looks = h.core.store.turn, 0

        async def turn(given: Turn) -> TurnOutcome:
            nonlocal looks
            looks += bool(given.look)
            return await real(given)

        h.core.store.turn = turn  # type: ignore[method-assign]
        await first_answer(h)
        assert sum(len(ids) for ids in registry(h).asked) > 200
        # they became due at 250 moments of five seconds
        assert looks < 125


@pytest.mark.rule("G6", "X7")
@pytest.mark.parametrize("how", ["contract", "credential", "action"])
async def test_a_call_that_needs_its_own_approval_goes_alone(how: str, tmp_path: Path) -> None:
    async with shared_house(tmp_path, *{"contract": (PER_CALL,), "action": (ACTION,)}.get(how, ())) as h:
        if how == "credential":
            await change_mode(h.core.credential_admin.meta, "key", CredentialMode.PER_CALL)
        names = await hand_over(h, 3, DONE)
        await h.run(MINUTE)
        assert registry(h).asked == []
        for name in names:
            await h.choose(ChoiceKind.APPROVE_ONCE, f"op-{name}")
        await run_for(h, 5 * SECOND)
        assert sorted(registry(h).asked) == [(name,) for name in names]
        assert {(await h.op(f"op-{name}")).status for name in names} == {Status.SUCCEEDED}


@pytest.mark.rule("G6", "G7")
async def test_whoever_has_to_ask_first_waits_for_no_company(tmp_path: Path) -> None:
    async with shared_house(tmp_path, PER_CALL, gather="60s") as h:
        due = (await h.submit("first", DONE, credential="key")).due_boot
        h.clock.jump(4_000)
        await h.submit("second", DONE, credential="key")
        assert due is not None
        await run_for(h, due + 200 - h.clock.now().boot)
        assert (await h.op("op-first")).status is Status.AWAITING_APPROVAL
        assert (await h.op("op-second")).status is Status.WAITING


@pytest.mark.rule("T1")
async def test_what_was_asked_together_is_due_together(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 6, RUNNING)
        await first_answer(h)
        assert len(registry(h).asked[0]) == 6
        assert rows(h, "SELECT count(DISTINCT next_poll_at), count(DISTINCT due_boot) FROM operation") == [(1, 1)]
        assert rows(h, "SELECT count(*), count(DISTINCT draw) FROM observation") == [(6, 1)]


@pytest.mark.rule("G6", "B2")
async def test_a_session_counts_a_call_for_each_operation_of_a_request(tmp_path: Path) -> None:
    async with shared_house(tmp_path, PER_SESSION) as h:
        await hand_over(h, 5, RUNNING)
        async with Running(h) as run:
            await run.until(lambda: all_asked(h, 5))
            drawn = await h.core.actions.group((await h.core.store.questions())[0].cause)
            choice = next(c for c in drawn.card.choices if c.kind is ChoiceKind.APPROVE_SESSION)
            assert choice.label == "approve session, 30 min / 3 calls"
            await h.core.actions.decide_group(
                drawn.cause, choice.key, drawn.digest, {"kind": "test"}, h.core.actions.operator()
            )
            await run.until(lambda: all_asked(h, 5))
        # three calls were left: three of the five went together, and nobody else
        assert [len(ids) for ids in registry(h).asked] == [3]
        assert sorted([(await h.op(f"op-j00{n}")).status_requests_used for n in range(5)]) == [0, 0, 1, 1, 1]


@pytest.mark.rule("O2", "O3", "B3")
async def test_one_whose_claim_is_refused_is_neither_charged_nor_asked_for(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 4, DONE)
        store = h.core.store
        real = store.turn

        async def turn(given: Turn) -> TurnOutcome:
            if given.claims and not registry(h).asked:
                # between the checks and the charge somebody holds one of them
                held = next(c.operation for c in given.claims if c.operation.operation_id == "op-j002")
                await lowering.lower(h.core.actions._desk, held.operation_id, ChoiceKind.HOLD, "look", "ops")
            return await real(given)

        store.turn = turn  # type: ignore[method-assign]
        await h.run(5 * MINUTE)
        assert [sorted(ids) for ids in registry(h).asked] == [["j000", "j001", "j003"]]
        held = await h.op("op-j002")
        assert (held.status, held.status_requests_used) == (Status.HELD, 0)
        assert await store.intents("op-j002") == ()
        assert list(await store.check()) == []


@pytest.mark.rule("O2", "S9", "E7")
async def test_a_record_that_moved_while_the_request_was_out_is_decided_anew_and_the_others_are_not_touched(
    tmp_path: Path,
) -> None:
    async with shared_house(tmp_path) as h:
        await hand_over(h, 3, RUNNING, DONE)
        h.bank.gate = asyncio.Event()
        running = asyncio.create_task(h.run(2 * MINUTE))
        await until(lambda: len(registry(h).asked) == 1, "the request is out")
        await h.core.actions.lower("op-j001", ChoiceKind.HOLD, "look", "ops")
        h.bank.gate.set()
        await running
        held = await h.op("op-j001")
        assert (held.status, held.last_known_state, held.status_requests_used) == (Status.HELD, "running", 1)
        (told,) = await h.events(EventName.POLLED, "op-j001")
        assert "one request with 2 others" in told.notes
        assert [(await h.op(f"op-j00{n}")).status for n in (0, 2)] == [Status.SUCCEEDED] * 2
        assert rows(h, "SELECT count(*) FROM operation WHERE lease_owner IS NOT NULL") == [(0,)]


@pytest.mark.rule("O2", "B4")
async def test_at_the_end_of_a_run_the_answer_for_all_of_them_is_awaited_and_recorded(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 4, DONE)
        h.bank.gate = asyncio.Event()
        stop = asyncio.Event()
        with h.worker() as controller:
            running = asyncio.create_task(controller.run(stop, watch=False))
            await until(lambda: len(registry(h).asked) == 1, "the request is out")
            stop.set()
            h.bank.gate.set()
            await running
        assert controller.report.sent == 1
        assert controller.report.recorded == 4
        assert {(await h.op(f"op-{name}")).status for name in names} == {Status.SUCCEEDED}


@pytest.mark.rule("B2", "B4", "O2")
async def test_a_worker_that_died_with_the_request_out_leaves_a_counted_lost_answer_for_each(tmp_path: Path) -> None:
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 3, DONE)
        h.bank.gate = asyncio.Event()
        with h.worker() as controller:
            dying = asyncio.create_task(controller.run(asyncio.Event(), watch=False))
            await until(lambda: len(registry(h).asked) == 1, "the request is out")
            # nothing of it ever runs again: its tasks end without a word to the store
            controller._store = _Gone()  # type: ignore[assignment]
            for task in controller._flight.tasks.values():
                task.cancel()
            dying.cancel()
            await asyncio.gather(dying, return_exceptions=True)
        h.bank.gate = None
        h.clock.requests_out = 0
        assert rows(h, "SELECT count(*), count(DISTINCT lease_owner) FROM operation WHERE lease_owner NOT NULL") == [
            (3, 1)
        ]
        async with h.open() as again:
            await h.run(30 * MINUTE, again)
        for name in names:
            found = await h.op(f"op-{name}")
            assert (found.status, found.status_requests_used) == (Status.SUCCEEDED, 2), name
            assert len(await h.events(EventName.ANSWER_LOST, f"op-{name}")) == 1
        assert list(await h.core.store.check()) == []


@pytest.mark.rule("B4", "O2", "B3")
async def test_a_failure_of_ours_in_a_send_is_a_lost_answer_and_leaves_no_lease_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 3, DONE)
        real, sends = Exchanger._send, 0

        async def send(self: Exchanger, out: Out) -> Answer | Fault:
            nonlocal sends
            sends += 1
            if sends == 1:
                raise RuntimeError("a fault of ours")
            return await real(self, out)

        monkeypatch.setattr(Exchanger, "_send", send)
        await h.run(30 * MINUTE)
        for name in names:
            found = await h.op(f"op-{name}")
            assert (found.status, found.status_requests_used) == (Status.SUCCEEDED, 2)
        assert rows(h, "SELECT count(*) FROM operation WHERE lease_owner IS NOT NULL") == [(0,)]
        assert list(await h.core.store.check()) == []


class _Gone:
    """The store of a process that is dead."""

    def __getattr__(self, name: str) -> object:
        async def gone(*_: object, **__: object) -> None:
            raise StoreUnusable("dead")

        return gone


@pytest.mark.rule("T8")
@pytest.mark.parametrize(
    "caps", ["[caps]\nconcurrency = 1\n", "[caps]\nper_minute = 2\n", ACCOUNT_SCOPE], ids=["flying", "minute", "scope"]
)
async def test_every_cap_counts_a_request_for_many_as_one(caps: str, tmp_path: Path) -> None:
    async with shared_house(tmp_path, ("[schedule]", f"{caps}[schedule]"), most=5) as h:
        names = await hand_over(h, 12, DONE)
        h.bank.overlap_s = 0.01
        await h.run(20 * MINUTE)
        assert {(await h.op(f"op-{name}")).status for name in names} == {Status.SUCCEEDED}
        assert {(await h.op(f"op-{name}")).status_requests_used for name in names} == {1}
        sizes = [len(ids) for ids in registry(h).asked]
        assert sizes == [5, 5, 2]
        at = registry(h).asked_at
        if "concurrency" not in caps:
            assert at[2] - at[0] >= MINUTE - 10 * SECOND


@pytest.mark.rule("T4", "X2")
@given(
    due=st.integers(-300_000, 0),
    gather=st.integers(0, 60_000),
    left=st.integers(1, 120_000),
    useful=st.none() | st.integers(1, 120_000),
)
def test_nobody_waits_for_company_past_a_limit_of_its_own_or_longer_than_gather_says(
    due: int, gather: int, left: int, useful: int | None
) -> None:
    now = Moment(Instant(1_000_000_000), BootMs(500_000), "b")
    one = made_operation(
        boot_id="b",
        due_boot=BootMs(now.boot + due),
        deadline_at=Instant(now.wall + left),
        deadline_boot=BootMs(now.boot + left),
        useful_until=None if useful is None else Instant(now.wall + useful),
    )
    until = waits_until(one, gather, now)
    assert until <= now.boot + due + gather or until == now.boot
    assert until - now.boot < min(left, left if useful is None else useful) or until == now.boot


@pytest.mark.rule("T5", "T6")
async def test_nobody_is_asked_before_it_is_due_and_nobody_waits_longer_than_gather_says(tmp_path: Path) -> None:
    async with shared_house(tmp_path, gather="5s") as h:
        due = {}
        for n in range(12):
            await h.submit(f"j{n}", DONE, credential="key")
            due[f"j{n}"] = (await h.op(f"op-j{n}")).due_boot or 0
            h.clock.jump(700)
        await h.run(5 * MINUTE)
        for ids, at in zip(registry(h).asked, registry(h).asked_at, strict=True):
            for name in ids:
                assert due[name] <= at, name
                assert at <= due[name] + 5 * SECOND + 100, name
        assert len(registry(h).asked) < 6


@pytest.mark.rule("O1", "B2")
async def test_where_our_own_comparing_fails_each_is_asked_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("ours")

    monkeypatch.setattr(sharing, "together", broken)
    async with shared_house(tmp_path) as h:
        names = await hand_over(h, 3, DONE)
        await h.run(30 * MINUTE)
        assert sorted(registry(h).asked) == [(name,) for name in names]
        assert {(await h.op(f"op-{name}")).status for name in names} == {Status.SUCCEEDED}
