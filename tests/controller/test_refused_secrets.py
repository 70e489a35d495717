"""A secret that was refused, is missing, is locked away, or belongs elsewhere: nothing is sent, nothing is charged."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pollcore.adapters.credential_ops import remove_credential
from pollcore.facts import ChoiceKind, CredentialPending, Refused, Status, StopDetail, StopReason
from pollcore.ports import Denial, Turn
from tests.controller.bank import DONE, RUNNING, refuses
from tests.controller.house import SECRET, House, house, kinds, pick, until

NEW = "the-rotated-secret"


def only(secret: str) -> Any:
    """The provider's answer to every secret but *secret*: 401."""
    return lambda seen: None if seen == f"Bearer {secret}" else refuses(401)


async def refused(h: House, jobs: int = 4) -> None:
    """Several operations with one credential that the provider refuses from now on."""
    h.bank.by_secret = only(NEW)
    for n in range(jobs):
        await h.submit(f"j{n}", RUNNING, DONE, credential="key")
    await h.run(60_000)


@pytest.mark.rule("H3", "E10", "K5")
async def test_after_one_401_nothing_else_sends_that_secret_and_all_join_one_question(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await refused(h)
        assert len(h.bank.status_seen) == 1
        ops = [await h.op(f"op-j{n}") for n in range(4)]
        assert {(op.status, op.stop_reason) for op in ops} == {(Status.ESCALATED, StopReason.AUTHORIZATION_DENIED)}
        assert sorted(op.status_requests_used for op in ops) == [0, 0, 0, 1]
        (card,) = await h.core.actions.cards()
        assert card.cause == f"authorization_denied:key:{h.bank.url}"
        assert card.count == 4


@pytest.mark.rule("K5", "B3", "V3")
async def test_while_a_token_is_being_bought_its_operation_looks_again_later_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE, credential="key")
        await h.submit("job-2", DONE)
        read, left = h.core.credentials.read, [3]

        async def slow(name: str, info: Any = None, *, patience_s: float | None = None) -> Any:
            left[0] -= 1
            if left[0] >= 0 and patience_s is not None:
                raise CredentialPending("its token is being bought", StopDetail.TOKEN_REFUSED)
            return await read(name, info)

        monkeypatch.setattr(h.core.credentials, "read", slow)
        await h.run(60_000)
        ops = [await h.op(f"op-job-{n}") for n in (1, 2)]
        assert [(op.status, op.status_requests_used) for op in ops] == [(Status.SUCCEEDED, 1)] * 2
        assert [seen.job for seen in h.bank.status_seen] == ["job-2", "job-1"]


@pytest.mark.rule("H3")
async def test_another_credential_and_no_credential_go_on_after_a_401(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.credential("second", NEW)
        await refused(h, 1)
        await h.submit("other", DONE, credential="second")
        await h.run(20_000)
        assert (await h.op("op-other")).status is Status.SUCCEEDED


@pytest.mark.rule("H3", "E2")
async def test_a_refused_secret_is_never_offered_again_until_it_has_really_changed(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await refused(h, 2)
        assert kinds(await h.card("op-j0")) == []
        h.clock.jump(1_000)
        await h.credential("key", SECRET)
        assert kinds(await h.card("op-j0")) == []
        await h.credential("key", NEW)
        assert kinds(await h.card("op-j0")) == ["check_once_with_rotated_credential"]
        await h.run(600_000)
        assert len(h.bank.status_seen) == 1


@pytest.mark.rule("H3", "K5", "G2")
async def test_after_a_rotation_each_wait_goes_on_by_its_own_decision(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await refused(h, 3)
        h.clock.jump(1_000)
        await h.credential("key", NEW)
        await h.choose(ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL, "op-j0")
        await h.choose(ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL, "op-j1")
        await h.run()
        ops = [await h.op(f"op-j{n}") for n in range(3)]
        assert [op.status for op in ops] == [Status.SUCCEEDED, Status.SUCCEEDED, Status.ESCALATED]
        assert {seen.secret for seen in h.bank.status_seen[1:]} == {f"Bearer {NEW}"}
        assert [seen for seen in h.bank.job("j2") if seen.secret != f"Bearer {SECRET}"] == []


@pytest.mark.rule("H3")
async def test_a_rotated_secret_that_is_refused_as_well_stops_again(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await refused(h, 1)
        h.clock.jump(1_000)
        await h.credential("key", "wrong-again")
        await h.choose(ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL, "op-j0")
        await h.run(60_000)
        op = await h.op("op-j0")
        assert (op.status, op.stop_reason, len(h.bank.status_seen)) == (
            Status.ESCALATED,
            StopReason.AUTHORIZATION_DENIED,
            2,
        )
        assert kinds(await h.card("op-j0")) == []


@pytest.mark.rule("H3", "K5", "O4")
async def test_a_secret_rotated_by_another_process_is_used_at_once(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        await h.submit("first", RUNNING, credential="key")
        await h.run(10_100)
        h.clock.jump(1_000)
        await h.credential("key", NEW, core=other)
        await h.run(12_000)
        assert {seen.secret for seen in h.bank.status_seen[1:]} == {f"Bearer {NEW}"}
        assert len(h.bank.status_seen) >= 2


@pytest.mark.rule("H3", "O4")
async def test_a_401_seen_by_one_core_stops_what_the_other_has_already_lined_up(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open(slots=1) as other:
        h.bank.gate = asyncio.Event()
        for n in range(2):
            await h.submit(f"j{n}", RUNNING, credential="key")
        h.clock.jump(11_000)
        stop = asyncio.Event()
        with h.worker(other) as controller:
            running = asyncio.create_task(controller.run(stop, watch=False))
            await until(lambda: len(h.bank.status_seen) == 1, "the one slot is taken, the second one is lined up")
            digest = await h.core.credentials.digest("key")
            denial = Denial("key", h.bank.url, digest, h.clock.now().wall)
            await h.core.store.turn(Turn(now=h.clock.now(), owner="run-elsewhere", denials=(denial,)))
            h.bank.gate.set()
            await until(lambda: _both_looked_at(h), "both were looked at")
            stop.set()
            await running
        assert len(h.bank.status_seen) == 1


async def _both_looked_at(h: House) -> bool:
    ops = [await h.op(f"op-j{n}") for n in range(2)]
    return all(op.completed_polls or op.status is Status.ESCALATED for op in ops)


# --- secrets that cannot be read --------------------------------------------------------------------------------------


@pytest.mark.rule("K3", "O7")
async def test_a_credential_pinned_elsewhere_is_not_sent_and_nothing_is_charged(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.credential("stray", origins=["https://elsewhere.example.test"])
        await h.submit("job-1", DONE, credential="stray")
        await h.run(60_000)
        op = await h.op()
        assert (op.status, op.stop_reason) == (Status.ESCALATED, StopReason.CREDENTIAL_UNAVAILABLE)
        assert op.stop_detail is StopDetail.ORIGIN_NOT_PINNED
        assert (op.status_requests_used, h.bank.requests) == (0, [])
        assert op.stop_explanation is not None
        assert f"credential set stray --origin {h.bank.url} --kind bearer" in op.stop_explanation


@pytest.mark.rule("K2", "K5", "O7")
async def test_a_missing_credential_stops_uncharged_and_goes_on_once_it_is_there(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", DONE, credential="absent")
        await h.run(60_000)
        op = await h.op()
        assert (op.stop_reason, op.stop_detail) == (StopReason.CREDENTIAL_UNAVAILABLE, StopDetail.CREDENTIAL_MISSING)
        assert (op.status_requests_used, h.bank.requests) == (0, [])
        waiting = pick(await h.card(), ChoiceKind.CHECK_AGAIN)
        assert waiting.unavailable is not None
        await h.credential("absent")
        before = await h.op()
        after = await h.choose(ChoiceKind.CHECK_AGAIN)
        assert (after.status, h.bank.requests) == (Status.WAITING, [])
        assert (after.max_status_requests, after.deadline_at) == (before.max_status_requests, before.deadline_at)
        await h.run()
        assert (await h.op()).status is Status.SUCCEEDED


@pytest.mark.rule("K2", "E10", "O7")
async def test_a_locked_keyring_stops_all_in_one_question_and_check_again_waits_for_it(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.credential("second")
        await h.submit("j0", DONE, credential="key")
        await h.submit("j1", DONE, credential="second")
        h.keyring.locked = True
        await h.run(60_000)
        ops = [await h.op(f"op-j{n}") for n in range(2)]
        assert {op.stop_detail for op in ops} == {StopDetail.KEYRING_LOCKED}
        assert [op.status_requests_used for op in ops] == [0, 0]
        assert h.bank.requests == []
        (card,) = await h.core.actions.cards()
        assert card.count == 2
        shown = await h.card("op-j0")
        again = pick(shown, ChoiceKind.CHECK_AGAIN)
        assert again.unavailable is not None
        with pytest.raises(Refused):
            await h.press(shown, again)
        h.keyring.locked = False
        await h.choose(ChoiceKind.CHECK_AGAIN, "op-j0")
        await h.run()
        assert (await h.op("op-j0")).status is Status.SUCCEEDED
        assert (await h.op("op-j1")).status is Status.ESCALATED


@pytest.mark.rule("K2")
async def test_a_credential_removed_while_it_is_in_use_stops_its_operation_uncharged(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, credential="key")
        await h.run(10_100)
        await remove_credential(h.core.vault, h.core.credential_admin.meta, "key")
        await h.run(60_000)
        op = await h.op()
        assert (op.status, op.stop_detail) == (Status.ESCALATED, StopDetail.CREDENTIAL_MISSING)
        assert op.status_requests_used == len(h.bank.status_seen) == 1
