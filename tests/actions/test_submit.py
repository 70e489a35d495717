"""Handing a wait over: one wait a job, counters that go on, ceilings and caps, saved responses, first use."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pollcore.actions import Submission, SubmitSpec, given
from pollcore.facts import (
    HOUR,
    MINUTE,
    Answer,
    ChoiceKind,
    EventName,
    Refused,
    Status,
    StopDetail,
    StopReason,
)
from pollcore.ports import Filter
from tests.controller.bank import DONE, RUNNING, says
from tests.controller.house import House, changed_as_shown, house, kinds, pick

TWO_CHECKS = ("max_status_requests = 12", "max_status_requests = 2")


async def submission(h: House, **spec: Any) -> Submission:
    return await h.core.actions.submit(SubmitSpec(**{"provider": "acme", "job_id": "job-1", "account": "acct", **spec}))


async def closed(h: House) -> None:
    """`op-job-1` used two requests and was closed without a final answer."""
    await h.submit("job-1", RUNNING)
    await h.run()
    await h.choose(ChoiceKind.CLOSE)
    assert (await h.op()).status is Status.CLOSED


@pytest.mark.rule("B2", "G5")
async def test_a_later_wait_for_the_same_job_asks_first_and_sends_nothing(tmp_path: Path) -> None:
    async with house(tmp_path, TWO_CHECKS) as h:
        await closed(h)
        later = (await submission(h, operation_id="op-later", caller="agent-7")).operation
        assert (later.status, later.stop_reason) == (Status.ESCALATED, StopReason.EXTENSION_REQUESTED)
        assert later.stop_detail is StopDetail.SECOND_SUBMISSION
        assert (later.status_requests_used, later.completed_polls) == (2, 2)
        assert kinds(await h.card("op-later"))[:2] == ["extend", "reject"]
        question = await h.question("op-later")
        assert question is not None
        assert question.asked_by == "agent-7"
        await h.run(30 * MINUTE)
        assert len(h.bank.status_seen) == 2


@pytest.mark.rule("B2", "G2")
async def test_a_later_wait_that_is_granted_gets_exactly_the_limits_asked_for(tmp_path: Path) -> None:
    async with house(tmp_path, ("max_status_requests = 12", "max_status_requests = 3")) as h:
        await closed(h)
        await submission(h, operation_id="op-later", max_status_requests=2, deadline_ms=9 * MINUTE)
        before, shown = await h.op("op-later"), await h.card("op-later")
        extend = pick(shown, ChoiceKind.EXTEND)
        assert extend.label == "extend 9 min / 2 checks"
        await h.press(shown, extend)
        after = await h.op("op-later")
        changed_as_shown(before, extend, after)
        assert (after.status, after.max_status_requests, after.extensions_used) == (Status.WAITING, 3 + 2, 0)
        assert after.deadline_at == before.deadline_at
        await h.run()
        op = await h.op("op-later")
        assert (op.stop_reason, op.status_requests_used) == (StopReason.REQUEST_BUDGET_EXHAUSTED, 5)
        assert len(h.bank.status_seen) == 5


@pytest.mark.rule("B2", "G5")
async def test_a_later_wait_that_is_rejected_is_closed_by_anyone(tmp_path: Path) -> None:
    async with house(tmp_path, TWO_CHECKS) as h:
        await closed(h)
        await submission(h, operation_id="op-later")
        after = await h.core.actions.lower("op-later", ChoiceKind.REJECT, "not again", "agent")
        assert after.status is Status.CLOSED
        assert await h.core.store.questions() == ()
        again = (await submission(h, operation_id="op-third")).operation
        assert (again.status, again.status_requests_used) == (Status.ESCALATED, 2)


@pytest.mark.rule("B2", "S9")
@pytest.mark.parametrize("answer", [DONE, says("failed"), says("cancelled"), says("expired")])
async def test_a_job_that_has_ended_is_returned_and_nothing_is_asked(answer: dict[str, Any], tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", answer)
        await h.run()
        ended = await h.op()
        found = await submission(h, operation_id="op-later")
        assert (found.operation, found.existed) == (ended, True)
        assert await h.core.store.operation("op-later") is None
        await h.run(MINUTE)
        assert len(h.bank.status_seen) == 1


@pytest.mark.rule("S7")
async def test_a_second_open_wait_for_a_job_is_refused_and_names_the_first(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING)
        for other in ({}, {"operation_id": "op-2"}, {"request_fingerprint": "ab" * 32}, {"caller": "another"}):
            with pytest.raises(Refused, match="op-job-1") as refused:
                await submission(h, **other)
            assert refused.value.code == "duplicate_job"
        other_account = await submission(h, account="other")
        assert other_account.operation.status is Status.WAITING
        assert len(await h.events(EventName.SUBMITTED)) == 2


@pytest.mark.rule("S7")
async def test_the_same_submission_under_its_id_is_returned_and_another_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        first = await h.submit("job-1", RUNNING)
        again = await submission(h, operation_id="op-job-1")
        assert (again.operation, again.existed) == (first, True)
        for other in ({"job_id": "job-2"}, {"account": "other"}, {"credential": "key"}, {"params": {"input": "b"}}):
            with pytest.raises(Refused) as refused:
                await submission(h, operation_id="op-job-1", **other)
            assert refused.value.code == "id_taken"


@pytest.mark.rule("S7", "O4")
async def test_of_two_submissions_of_one_job_at_the_same_moment_one_is_stored(tmp_path: Path) -> None:
    async with house(tmp_path) as h, h.open() as other:
        specs = [SubmitSpec(provider="acme", job_id="job-1", account="acct", operation_id=f"op-{n}") for n in range(2)]
        both = await asyncio.gather(
            h.core.actions.submit(specs[0]), other.actions.submit(specs[1]), return_exceptions=True
        )
        (lost,) = [one for one in both if isinstance(one, BaseException)]
        assert isinstance(lost, Refused)
        assert lost.code == "duplicate_job"


# --- ceilings and caps ------------------------------------------------------------------------------------------------


@pytest.mark.rule("B1")
@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"max_status_requests": 201}, "max_status_requests"),
        ({"max_transport_failures": 51}, "max_transport_failures"),
        ({"max_rate_limited": 21}, "max_rate_limited"),
        ({"deadline_ms": 8 * HOUR + 1}, "deadline"),
        ({"max_status_requests": 0}, "max_status_requests"),
        ({"deadline_ms": -1}, "deadline"),
    ],
)
async def test_a_submission_above_a_ceiling_or_absurd_is_refused_and_nothing_is_stored(
    spec: dict[str, Any], name: str, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        with pytest.raises(Refused) as refused:
            await submission(h, **spec)
        assert (refused.value.code, refused.value.details["limit"]) == ("limit", name)
        assert not any((await h.core.store.counts()).values())


@pytest.mark.rule("B1")
async def test_policy_caps_open_operations_for_each_caller_and_account(tmp_path: Path) -> None:
    async with house(tmp_path, config="[policy]\nopen_operations = 2\n") as h:
        for n in range(2):
            await h.submit(f"j{n}", RUNNING, caller="a")
        with pytest.raises(Refused, match="open_operations = 2") as refused:
            await h.submit("j2", RUNNING, caller="a")
        assert refused.value.code == "caps"
        await h.submit("j3", RUNNING, caller="b")
        await h.submit("j4", RUNNING, caller="a", account="other")
        await h.core.actions.lower("op-j0", ChoiceKind.CLOSE, "no longer wanted", "a")
        await h.submit("j5", RUNNING, caller="a")


@pytest.mark.rule("B1")
async def test_policy_caps_requests_of_the_last_hour_for_each_caller_and_account(tmp_path: Path) -> None:
    async with house(tmp_path, config="[policy]\nrequests_per_hour = 3\n") as h:
        await h.submit("j0", RUNNING, RUNNING, DONE, caller="a")
        await h.run()
        with pytest.raises(Refused, match="requests_per_hour = 3"):
            await h.submit("j1", RUNNING, caller="a")
        await h.submit("j2", DONE, caller="b")
        h.clock.jump(HOUR)
        await h.submit("j3", DONE, caller="a")


# --- first use, saved responses ---------------------------------------------------------------------------------------


@pytest.mark.rule("X7")
async def test_a_contract_that_does_not_call_its_request_read_only_is_taken_and_asked_about(tmp_path: Path) -> None:
    lines = 'observation = "read_only"\nevidence = "the tests of this project"\n'
    async with house(tmp_path, (lines, "")) as h:
        await h.submit("job-1", RUNNING)
        await h.run()
        assert (await h.op()).status is Status.AWAITING_APPROVAL
        assert h.bank.status_seen == []


FROM_ANSWER = ('job_id = "body.id"\n[sch', 'job_id = "body.id"\nstatus_url = "http.headers.location"\n[sch')
BY_URL = ('observation = "read_only"', 'provider_url = "require"\nobservation = "read_only"')


def answer(h: House, body: dict[str, Any], *headers: tuple[str, str], status: int = 202) -> Answer:
    now = h.clock.now().wall
    return Answer(status, headers, json.dumps(body).encode(), now, now)


@pytest.mark.rule("H1", "B6")
async def test_a_saved_response_gives_job_and_status_url_relative_to_the_request(tmp_path: Path) -> None:
    async with house(tmp_path, FROM_ANSWER, BY_URL) as h:
        h.bank.scripts["poll-me"] = [DONE]
        saved = answer(h, {"id": "job-9", "status": "queued"}, ("location", "../v2/status/poll-me"))
        given = await submission(h, job_id=None, response=saved, response_url=f"{h.bank.url}/v1/jobs")
        op = given.operation
        assert op.submitted.job_id == "job-9"
        assert op.submitted.status_url == f"{h.bank.url}/v2/status/poll-me"
        assert op.last_known_state == "queued"
        await h.run()
        assert [seen.path for seen in h.bank.status_seen] == ["/v2/status/poll-me"]
        assert (await h.op(op.operation_id)).status is Status.SUCCEEDED


@pytest.mark.rule("H1", "K3")
async def test_a_saved_response_that_points_to_a_foreign_origin_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path, FROM_ANSWER, BY_URL) as h:
        saved = answer(h, {"id": "job-9", "status": "queued"}, ("location", "https://evil.example.test/status"))
        with pytest.raises(Refused, match=r"evil\.example\.test"):
            await submission(h, job_id=None, response=saved, response_url=f"{h.bank.url}/v1/jobs")


@pytest.mark.rule("H1", "S9")
@pytest.mark.parametrize(("body", "status"), [(DONE["body"], Status.SUCCEEDED), ({"status": "failed"}, Status.FAILED)])
async def test_a_saved_response_that_is_already_final_ends_the_operation_without_a_request(
    body: dict[str, Any], status: Status, tmp_path: Path
) -> None:
    async with house(tmp_path) as h:
        given = await submission(h, job_id=None, response=answer(h, {"id": "job-9", **body}, status=200))
        op = given.operation
        assert (op.status, op.status_requests_used, op.completed_polls) == (status, 0, 0)
        assert (await h.question(op.operation_id) is None) is (status is Status.SUCCEEDED)
        await h.run(MINUTE)
        assert h.bank.requests == []


@pytest.mark.rule("H1", "S7")
async def test_a_saved_response_that_names_another_job_than_the_command_or_none_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        with pytest.raises(Refused) as refused:
            await submission(h, job_id="job-1", response=answer(h, {"id": "job-9", "status": "queued"}))
        assert refused.value.code == "job_id_differs"
        with pytest.raises(Refused) as refused:
            await submission(h, job_id=None, response=answer(h, {"status": "queued"}))
        assert refused.value.code == "job_id_missing"


@pytest.mark.rule("S7", "K3")
async def test_account_and_credential_come_from_the_instance_where_the_command_names_none(tmp_path: Path) -> None:
    config = '[providers.prod]\ncontract = "acme"\ncredential = "key"\naccount = "production"\n'
    async with house(tmp_path, config=config) as h:
        op = (await submission(h, provider="prod", account=None)).operation
        assert (op.submitted.account, op.credential) == ("production", "key")
        by_name = (await submission(h, job_id="job-2", account=None, credential="key")).operation
        assert by_name.submitted.account == "key"
        by_host = (await submission(h, job_id="job-3", account=None)).operation
        assert by_host.submitted.account == "127.0.0.1"


# --- pausing a provider -----------------------------------------------------------------------------------------------


@pytest.mark.rule("G5", "O7")
async def test_a_paused_provider_is_asked_nothing_while_deadlines_run(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        until = h.clock.now().wall + 20 * MINUTE
        await h.core.actions.pause("acme", "acct", until, "ops")
        await h.submit("job-1", DONE)
        await h.submit("short", DONE, deadline_ms=10 * MINUTE)
        await h.submit("free", DONE, account="other")
        await h.run()
        assert (await h.op("op-short")).stop_reason is StopReason.DEADLINE_EXCEEDED
        assert h.bank.job("free")[0].at < until <= h.bank.job("job-1")[0].at
        assert (await h.op()).status is Status.SUCCEEDED
        with pytest.raises(Refused):
            await h.core.actions.pause("acme", None, h.clock.now().wall, "ops")


# --- what is known to be wrong is refused at once ---------------------------------------------------------------------


async def refused(h: House, code: str, **spec: Any) -> str:
    """The refusal of *spec*; nothing was stored."""
    with pytest.raises(Refused) as caught:
        await submission(h, **spec)
    assert caught.value.code == code
    assert await h.core.store.operations(Filter()) == ()
    return str(caught.value)


@pytest.mark.rule("S7")
@pytest.mark.parametrize("text", ["zz", "a" * 63, "a" * 65, "g" * 64, " " + "a" * 63, "\u0661" * 64])
async def test_a_fingerprint_that_is_no_sha_256_is_refused(tmp_path: Path, text: str) -> None:
    async with house(tmp_path) as h:
        assert "64 hex digits" in await refused(h, "fingerprint", request_fingerprint=text)


@pytest.mark.rule("S7")
async def test_a_fingerprint_is_kept_in_lower_case(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        stored = (await submission(h, request_fingerprint="AB" * 32)).operation
        assert stored.submitted.request_fingerprint == "ab" * 32
        again = await submission(h, operation_id=stored.operation_id, request_fingerprint="ab" * 32)
        assert again.existed


@pytest.mark.rule("S7", "K3")
async def test_a_name_that_no_credential_has_is_refused_with_near_ones(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        await given.check_stored(h.core.credentials, "key")
        for name, told in (("keyy", "did you mean key?"), ("zzzzzz", "credential list")):
            with pytest.raises(Refused, match=f"pollconsole credential set {name}") as caught:
                await given.check_stored(h.core.credentials, name)
            assert told in str(caught.value)


@pytest.mark.rule("S7", "K5")
async def test_a_credential_is_not_wanted_by_a_contract_that_asks_without_one(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        h.write_contract(('kind = "bearer"\noptional = true', 'kind = "none"'), name="open")
        told = await refused(h, "credential", provider="open", credential="key", account=None)
        assert "asks without a credential; leave --credential out" in told


@pytest.mark.rule("S7", "K5")
async def test_settings_that_name_a_credential_for_a_contract_without_one_are_named_as_the_place_to_mend(
    tmp_path: Path,
) -> None:
    async with house(tmp_path, config='[providers.prod]\ncontract = "open"\ncredential = "key"\n') as h:
        h.write_contract(('kind = "bearer"\noptional = true', 'kind = "none"'), name="open")
        told = await refused(h, "credential", provider="prod", account=None)
        assert told.startswith('config.toml: [providers.prod] credential = "key": ')
        assert told.endswith("asks without a credential; take the line out")
        assert "--credential" not in told
        with pytest.raises(Refused) as caught:
            await given.check_stored(h.core.credentials, "keyy", instance="prod")
        assert str(caught.value).startswith('config.toml: [providers.prod] credential = "keyy": no credential')


@pytest.mark.rule("K3", "H2")
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("file:///etc/passwd", "bad_url"),
        ("/relative", "bad_url"),
        ("https://user:secret@{host}/x", "bad_url"),
        ("https://elsewhere.example.test/x", "foreign_origin"),
        ("https://{host}/x", "foreign_origin"),
    ],
)
async def test_a_status_url_outside_the_contract_is_refused_at_submit(tmp_path: Path, url: str, code: str) -> None:
    async with house(tmp_path, ("[status]", '[status]\nprovider_url = "prefer"')) as h:
        host = h.bank.url.partition("://")[2]
        told = await refused(h, code, status_url=url.format(host=host))
        assert told.startswith("--status-url: ")
        assert "secret" not in told
        assert (await submission(h, status_url=f"{h.bank.url}/v1/jobs/job-1")).operation.status is Status.WAITING


@pytest.mark.rule("H2")
async def test_a_status_url_over_http_beyond_this_machine_needs_allow_http(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        contract = h.core.contracts.find("acme")
        url, origin = "http://lan.example.test/x", "http://lan.example.test:80"
        plain = msgspec.structs.replace(contract, origins=(origin,), allow_http=False)
        with pytest.raises(Refused, match="allow_http = true") as caught:
            given.check_status_url(plain, url)
        assert caught.value.code == "insecure"
        given.check_status_url(msgspec.structs.replace(plain, allow_http=True), url)


@pytest.mark.rule("S7")
@pytest.mark.parametrize("job_id", [".", "..", "a\nb", "\x1b[2J", "a\u2028b", "a\x7f"])
async def test_a_job_id_that_no_address_can_carry_is_refused(tmp_path: Path, job_id: str) -> None:
    async with house(tmp_path) as h:
        assert "job id" in await refused(h, "job_id", job_id=job_id)
        assert (await submission(h, job_id="...")).operation.submitted.job_id == "..."


@pytest.mark.rule("B1", "S7")
async def test_the_same_id_with_other_terms_names_each_that_stays(tmp_path: Path) -> None:
    async with house(tmp_path) as h:
        first = await submission(h, operation_id="op-s", deadline_ms=20 * MINUTE, label="a")
        assert (await submission(h, operation_id="op-s", deadline_ms=20 * MINUTE, label="a")).warnings == ()
        late = first.operation.deadline_at
        again = await submission(
            h, operation_id="op-s", deadline_ms=10 * MINUTE, max_status_requests=7, max_rate_limited=1,
            useful_until=late, label="b", caller="c",
        )  # fmt: skip
        assert (again.existed, again.operation) == (True, first.operation)
        (warning,) = again.warnings
        for name in ("max_status_requests 7", "max_rate_limited 1", "deadline 2", "useful_until 2", "label", "caller"):
            assert name in warning
        assert "max_transport_failures" not in warning
