"""A bought token that the provider refused: never sent again, another one only by an operator's decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pollcore.adapters import token_kinds
from pollcore.adapters.credential_ops import set_credential
from pollcore.adapters.token_exchange import AGAIN_MS
from pollcore.facts import HOUR, ChoiceKind, Secret, Status, StopReason
from tests.controller.bank import DONE, RUNNING, refuses
from tests.controller.house import House, house, kinds

ROTATED = ChoiceKind.CHECK_ONCE_WITH_ROTATED_CREDENTIAL


def sells(*tokens: str) -> list[dict[str, Any]]:
    """The seller's answers in turn, the last one for ever."""
    return [
        {"status": 200, "headers": {}, "body": {"access_token": token, "token_type": "Bearer", "expires_in": 36_000}}
        for token in tokens
    ]


async def buys(h: House, *tokens: str) -> None:
    """A credential `key` that buys *tokens* from the bank; `tok-1` and `tok-2` are refused as soon as they are used."""
    h.bank.created = sells(*tokens)
    h.bank.by_secret = lambda seen: refuses(401) if seen in ("Bearer tok-1", "Bearer tok-2") else None
    await enter(h)


async def enter(h: House) -> None:
    names = token_kinds.seller_names("oauth2", url=f"{h.bank.url}/token", client_auth=None, scope=None)
    await set_credential(
        h.core.vault,
        h.core.credential_admin.meta,
        name="key",
        kind="oauth2",
        names=names,
        origins=[h.bank.url],
        secret=Secret("client-canary:pass-canary"),
        now=h.clock.now().wall,
    )


async def refused(h: House, *tokens: str, jobs: int = 3) -> None:
    await buys(h, *tokens)
    for n in range(jobs):
        await h.submit(f"j{n}", RUNNING, DONE, credential="key")
    await h.run(60_000)


@pytest.mark.rule("H3", "K5", "E10")
async def test_after_a_401_on_a_token_all_join_one_question_and_nothing_is_bought_or_sent_unasked(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await refused(h, "tok-1", "good")
        ops = [await h.op(f"op-j{n}") for n in range(3)]
        assert {(op.status, op.stop_reason) for op in ops} == {(Status.ESCALATED, StopReason.AUTHORIZATION_DENIED)}
        assert (len(h.bank.status_seen), len(h.bank.submissions)) == (1, 1)
        (card,) = await h.core.actions.cards()
        assert (card.cause, card.count) == (f"authorization_denied:key:{h.bank.url}", 3)


@pytest.mark.rule("H3", "K5", "G2", "E2")
async def test_a_freshly_bought_token_is_offered_as_a_rotated_credential_and_each_wait_decides_by_itself(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await refused(h, "tok-1", "good")
        assert kinds(await h.card("op-j0")) == [ROTATED.value]
        assert len(h.bank.submissions) == 2
        await h.run(10 * 60_000)
        assert len(h.bank.status_seen) == 1
        await h.choose(ROTATED, "op-j0")
        await h.run()
        assert [(await h.op(f"op-j{n}")).status for n in range(2)] == [Status.SUCCEEDED, Status.ESCALATED]
        assert [seen.secret for seen in h.bank.status_seen] == ["Bearer tok-1", "Bearer good", "Bearer good"]
        assert len(h.bank.submissions) == 2


@pytest.mark.rule("H3", "O4")
async def test_no_other_wait_sends_a_new_token_unasked_not_after_a_restart_either_until_one_was_accepted(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await refused(h, "tok-1", "good", "good-2", jobs=1)
        async with h.open() as other:
            await h.submit("later", DONE, credential="key")
            await h.run(60_000, other)
            later = await h.op("op-later")
            assert (later.status, later.stop_reason) == (Status.ESCALATED, StopReason.AUTHORIZATION_DENIED)
            assert (later.status_requests_used, len(h.bank.submissions)) == (0, 1)
        await h.choose(ROTATED, "op-j0")
        await h.run()
        async with h.open() as third:
            await h.submit("last", DONE, credential="key")
            await h.run(60_000, third)
        assert (await h.op("op-last")).status is Status.SUCCEEDED
        assert [seen for seen in h.bank.status_seen[1:] if seen.secret == "Bearer tok-1"] == []


@pytest.mark.rule("H3", "T10")
async def test_a_seller_that_gives_the_refused_token_again_is_asked_rarely_and_nothing_is_offered(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await refused(h, "tok-1", jobs=1)
        for _ in range(20):
            assert kinds(await h.card("op-j0")) == []
        assert len(h.bank.submissions) == 2
        for _ in range(HOUR // AGAIN_MS):
            h.clock.jump(AGAIN_MS)
            assert kinds(await h.card("op-j0")) == []
        assert 4 <= len(h.bank.submissions) <= 15
        assert len(h.bank.status_seen) == 1


@pytest.mark.rule("H3", "K5")
async def test_a_new_token_that_is_refused_as_well_stops_again_for_another_decision(
    tmp_path: Path,
) -> None:
    async with house(tmp_path) as h:
        await refused(h, "tok-1", "tok-2", "good", jobs=1)
        await h.choose(ROTATED, "op-j0")
        await h.run(60_000)
        op = await h.op("op-j0")
        assert (op.status, op.stop_reason) == (Status.ESCALATED, StopReason.AUTHORIZATION_DENIED)
        assert [seen.secret for seen in h.bank.status_seen] == ["Bearer tok-1", "Bearer tok-2"]
        assert len(h.bank.submissions) == 2
        h.clock.jump(AGAIN_MS)
        assert kinds(await h.card("op-j0")) == [ROTATED.value]
        await h.choose(ROTATED, "op-j0")
        await h.run()
        assert (await h.op("op-j0")).status is Status.SUCCEEDED


@pytest.mark.rule("H3", "K5")
async def test_a_credential_that_was_entered_anew_serves_the_waits_that_go_on(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await refused(h, "tok-1", "good", jobs=1)
        h.clock.jump(1_000)
        await enter(h)
        await h.submit("later", DONE, credential="key")
        await h.run(60_000)
        assert (await h.op("op-later")).status is Status.SUCCEEDED
