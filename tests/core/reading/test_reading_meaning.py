"""What answers mean beside the plain table: history, guards, chains, next addresses, submissions, stored answers."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.reading.helpers import START, URL, answer, contract, look, moment, operation

from pollcore.contract import requests
from pollcore.facts import (
    ActionOutcome,
    Fault,
    FaultKind,
    Instant,
    Memory,
    Refused,
    StopDetail,
    Submitted,
    Verdict,
    iso,
)
from pollcore.reading import body_beside, explain, from_response, read_cancel, read_submit, reread

V = Verdict
D = StopDetail
SEEN = Memory(first_seen_at=START, last_state="running", polls=1, in_a_row=1)


def kind(pair: tuple[object, object]) -> tuple[object, object]:
    seen = pair[0]
    return seen.verdict, seen.detail  # type: ignore[attr-defined]


@pytest.mark.rule("H1", "H2", "H3", "H4", "H5", "H6", "B4")
@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (401, (V.DENIED, None)),
        (403, (V.DENIED, None)),
        (404, (V.INTEGRATION, D.NOT_FOUND)),
        (408, (V.TRANSPORT_FAILURE, None)),
        (410, (V.INTEGRATION, D.NOT_FOUND)),
        (425, (V.TRANSPORT_FAILURE, None)),
        (429, (V.RATE_LIMITED, None)),
        (500, (V.TRANSPORT_FAILURE, None)),
        (503, (V.TRANSPORT_FAILURE, None)),
        (599, (V.TRANSPORT_FAILURE, None)),
        *(
            (code, (V.INTEGRATION, D.UNEXPECTED_STATUS))
            for code in (203, 204, 206, 300, 302, 304, 400, 405, 409, 418, 470)
        ),
        *((code, (V.WAITING, None)) for code in (200, 201, 202)),
    ],
)
def test_every_status_without_a_rule_has_its_default(code: int, expected: tuple[Verdict, StopDetail | None]) -> None:
    assert kind(look(contract(), answer(code, {"status": "running"}))) == expected


@pytest.mark.rule("H4")
def test_not_found_by_history_grace_seen_cancelled() -> None:
    more = "[not_found]\ngrace_seconds = 30\nonce_seen = 'expired'\nconfirms_cancel = true\n"
    made = contract(more)
    early, memory = look(made, answer(404, {}, after=30_000))
    assert (early.verdict, early.job_seen, memory.first_seen_at) == (V.WAITING, False, None)
    late = look(made, answer(404, {}, after=30_001))[0]
    assert late.detail is D.NOT_FOUND
    assert "job-1" in (late.explanation or "")
    assert "10:00:30" in (late.explanation or "")
    assert look(made, answer(404, {}, after=1_000), SEEN)[0].verdict is V.EXPIRED
    assert look(made, answer(404, {}, after=1_000), Memory(cancel_sent_at=START))[0].verdict is V.CANCELLED
    for code in (404, 410):
        # asked before the cancel was sent, answered after it: nothing of the cancel is in it
        asked = answer(code, {}, after=1_000)
        for sent_at, verdict in ((asked.sent_at, V.CANCELLED), (Instant(asked.sent_at + 1), V.EXPIRED)):
            known = msgspec.structs.replace(SEEN, cancel_sent_at=sent_at)
            assert look(made, asked, known)[0].verdict is verdict
    assert kind(look(contract(), answer(404, {}), SEEN)) == (V.INTEGRATION, D.NOT_FOUND)
    assert kind(look(contract(), answer(404, {}), Memory(cancel_sent_at=START))) == (V.INTEGRATION, D.NOT_FOUND)
    assert look(contract(), answer(410, {}), SEEN)[0].verdict is V.EXPIRED


@pytest.mark.rule("H4", "H5", "H6", "S1")
def test_error_statuses_and_a_200_that_says_not_found_are_read_by_body_where_the_contract_knows_them() -> None:
    made = contract(
        """
[[rules]]
status = [400]
when = "body.code == 'STILL_PREPARING'"
state = "preparing"
category = "waiting"
[[rules]]
status = ["5xx"]
when = "body.code == 'UNKNOWN_JOB'"
category = "not_found"
[[rules]]
status = [429]
when = "body.code == 'insufficient_quota'"
category = "quota_exhausted"
[[rules]]
when = "length(body.errors || `[]`) > `0`"
category = "not_found"
"""
    )
    waiting, memory = look(made, answer(400, {"code": "STILL_PREPARING"}))
    assert (waiting.verdict, waiting.state, waiting.job_seen) == (V.WAITING, "preparing", False)
    assert memory.first_seen_at is None
    assert kind(look(made, answer(400, {"code": "x"}))) == (V.INTEGRATION, D.UNEXPECTED_STATUS)
    assert kind(look(made, answer(503, {"code": "UNKNOWN_JOB"}))) == (V.INTEGRATION, D.NOT_FOUND)
    assert kind(look(made, answer(503, b"<html>"))) == (V.TRANSPORT_FAILURE, None)
    assert look(made, answer(429, {"code": "insufficient_quota"}))[0].verdict is V.QUOTA_EXHAUSTED
    assert look(made, answer(429, {"code": "slow"}))[0].verdict is V.RATE_LIMITED
    assert kind(look(made, answer(200, {"errors": ["gone"], "status": "running"}))) == (V.INTEGRATION, D.NOT_FOUND)


@pytest.mark.rule("X5")
def test_a_rule_that_raises_is_our_failure_and_names_the_rule() -> None:
    made = contract('[[rules]]\nname = "too many"\nwhen = "length(body.items) > `2`"\ncategory = "failed"\n')
    seen, memory = look(made, answer(200, {"status": "succeeded"}), SEEN)
    assert (seen.verdict, seen.detail) == (V.INTEGRATION, D.RULE_FAILED)
    assert 'rules[1] "too many"' in (seen.explanation or "")
    assert (memory.last_state, memory.in_a_row) == ("running", 1)


@pytest.mark.rule("X5", "S4")
def test_no_rule_succeeds_over_a_body_that_could_not_be_read() -> None:
    more = (
        '[[rules]]\nwhen = "body.error"\ncategory = "failed"\n[[rules]]\n'
        'status = [200]\ncategory = "succeeded"\nstate = "ok"\n'
    )
    made = contract(more, state="")
    assert look(made, answer(200, {"x": 1}))[0].verdict is V.SUCCEEDED
    assert kind(look(made, answer(200, b'{"error": "b'))) == (V.INTEGRATION, D.UNREADABLE)
    assert kind(look(made, answer(200, b""))) == (V.INTEGRATION, D.UNREADABLE)


@pytest.mark.rule("X5", "X4")
def test_no_later_rule_or_status_table_decides_over_a_body_that_an_earlier_rule_wanted() -> None:
    rules = '[[rules]]\nwhen = "body.ok"\ncategory = "succeeded"\n[[rules]]\nstatus = [200]\ncategory = "failed"\n'
    assert look(contract(rules, state=""), answer(200, {"ok": False}))[0].verdict is V.FAILED
    assert kind(look(contract(rules, state=""), answer(200, b'{"ok": tr'))) == (V.INTEGRATION, D.UNREADABLE)
    table = '[state]\nvalue = "http.status"\n[states]\nwaiting = [202]\nsucceeded = [200]\n'
    by_code = contract(state=table)
    assert look(by_code, answer(202, b""))[0].verdict is V.WAITING
    assert look(by_code, answer(200, {}))[0].verdict is V.SUCCEEDED
    assert kind(look(by_code, answer(200, b'{"a":'))) == (V.INTEGRATION, D.UNREADABLE)


@pytest.mark.rule("S4")
@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://files.example.test/r", True),
        ("https://eu.cdn.example.net/r?sig=1", True),
        ("/v1/results/1", False),
        ("https://files.example.test.evil.test/r", False),
        ("https://cdn.example.net/r", False),
        ("https://evilcdn.example.net/r", False),
        (None, False),
        ("", False),
        ("http://files.example.test/r", False),
        ("javascript:alert(1)", False),
        (7, False),
        (["https://files.example.test"], False),
        ("https://files.example.test@evil.test/", False),
        ("https://files.example.test\\@evil.test/", False),
    ],
)
def test_a_required_url_counts_only_on_an_allowed_host(url: object, good: bool) -> None:
    made = contract(
        '[[success.requires]]\npath = "body.url"\nformat = "url"\nhosts = ["files.example.test", "*.cdn.example.net"]\n'
    )
    seen, _ = look(made, answer(200, {"status": "succeeded", "url": url}))
    if good:
        assert seen.verdict is V.SUCCEEDED
        assert seen.result is not None
        assert (seen.result.fields, seen.result.validated) == ({"url": url}, True)
    else:
        assert (seen.verdict, seen.detail) == (V.INTEGRATION, D.SUCCEEDED_WITHOUT_RESULT)
        assert seen.result is None or not seen.result.validated


@pytest.mark.rule("S4")
def test_types_formats_forbidden_fields_and_qualifiers_guard_a_success() -> None:
    made = contract(
        """
[success]
permits = "read_rows"
forbids = ["body.error", "body.active > `0`"]
[[success.requires]]
path = "body.n"
type = "integer"
[[success.requires]]
path = "body.run"
format = "uuid"
[[success.qualifiers]]
name = "partial"
when = "body.bad > `0`"
"""
    )
    good = {
        "status": "succeeded",
        "n": 0,
        "run": "7c863686-fddf-41e8-8494-76b7fd714e44",
        "error": None,
        "active": 0,
        "bad": 2,
    }
    seen, _ = look(made, answer(200, good))
    assert seen.result is not None
    assert (seen.verdict, seen.result.permits, seen.result.qualifiers) == (V.SUCCEEDED, "read_rows", ("partial",))
    for wrong in ({"n": True}, {"n": "1"}, {"n": 1.5}, {"run": "x"}, {"n": None}):
        assert kind(look(made, answer(200, {**good, **wrong}))) == (V.INTEGRATION, D.SUCCEEDED_WITHOUT_RESULT), wrong
    for against in ({"error": "boom"}, {"active": 3}, {"error": {"code": 0}}):
        bad, _ = look(made, answer(200, {**good, **against}))
        assert (bad.verdict, bad.detail) == (V.INTEGRATION, D.SUCCESS_CONTRADICTED)
        assert bad.result is not None
        assert bad.result.validated is False


@pytest.mark.rule("S5", "E5")
@pytest.mark.parametrize(
    ("unit", "value", "at"),
    [
        ("unix_seconds", START // 1_000 + 60, 60_000),
        ("unix_milliseconds", START + 60_000, 60_000),
        ("iso", "2026-03-02T10:01:00Z", 60_000),
        ("seconds", 60, 60_000),
        ("seconds", "60", 60_000),
        ("minutes", 1, 60_000),
    ],
)
def test_waiting_past_the_providers_own_expiry_is_an_integration_failure(unit: str, value: object, at: int) -> None:
    made = contract(f'[[expiry]]\npath = "body.exp"\nunit = "{unit}"\n')
    before, _ = look(made, answer(200, {"status": "running", "exp": value}, after=at))
    assert (before.verdict, before.provider_expires_at) == (V.WAITING, START + at)
    after, _ = look(made, answer(200, {"status": "running", "exp": value}, after=at + 1))
    assert (after.verdict, after.detail) == (V.INTEGRATION, D.WAITING_PAST_PROVIDER_EXPIRY)
    done, _ = look(made, answer(200, {"status": "succeeded", "exp": value}, after=at + 1))
    assert done.verdict is V.SUCCEEDED
    odd, _ = look(made, answer(200, {"status": "running", "exp": "someday"}))
    assert odd.verdict is V.WAITING
    assert any(note.startswith("expiry_invalid") for note in odd.notes)


@pytest.mark.rule("S5")
def test_an_anchored_span_and_a_results_expiry_are_kept_apart() -> None:
    more = (
        '[[expiry]]\npath = "body.ttl"\nunit = "seconds"\nanchor = "body.created"\n'
        '[[expiry]]\npath = "body.url_until"\nunit = "iso"\nof = "result"\n'
    )
    body = {"status": "running", "ttl": 90, "created": "2026-03-02T09:59:00Z", "url_until": "2026-03-02T09:00:00Z"}
    seen, _ = look(contract(more), answer(200, body, after=29_000))
    assert seen.provider_expires_at == START + 30_000
    assert seen.verdict is V.WAITING
    assert f"result kept until {iso(Instant(START - 3_600_000))}" in seen.notes


@pytest.mark.rule("S6")
@pytest.mark.parametrize("theirs", ["job-7", "JOB-1", 7, True, ["job-1"], {"id": "job-1"}, "job-1 "])
def test_another_jobs_answer_is_never_ours(theirs: object) -> None:
    made = contract('[identity]\njob_id = "body.id"\n')
    for status in ("succeeded", "failed", "running"):
        seen, memory = look(made, answer(200, {"id": theirs, "status": status}))
        assert (seen.verdict, seen.detail, seen.job_seen) == (V.INTEGRATION, D.WRONG_JOB, False)
        assert memory.first_seen_at is None


@pytest.mark.rule("S6")
def test_a_numeric_id_is_its_text_and_another_account_is_wrong_too() -> None:
    made = contract('[identity]\njob_id = "body.id"\naccount = "body.acc"\n')
    assert look(made, answer(200, {"id": 0, "status": "running"}), job_id="0")[0].verdict is V.WAITING
    assert kind(look(made, answer(200, {"id": "job-1", "acc": "b", "status": "running"}))) == (
        V.INTEGRATION,
        D.WRONG_JOB,
    )


@pytest.mark.rule("S10", "X8")
def test_attempts_and_progress_are_recorded_and_after_the_end_another_attempt_is_another_job() -> None:
    made = contract(
        '[identity]\nattempt = "body.try"\n[progress]\n'
        'value = "body.done"\ntotal = "body.of"\n[settle]\ndelay = "10s"\n'
    )
    _, one = look(made, answer(200, {"status": "running", "try": 1, "done": 3, "of": 9}))
    assert (one.attempt, one.progress, one.last_state) == ("1", "3/9", "running")
    seen, two = look(made, answer(200, {"status": "queued", "try": 2}), one)
    assert (seen.verdict, two.attempt, two.state_changes) == (V.WAITING, "2", 1)
    settling = msgspec.structs.replace(two, settling="failed:failed")
    seen, three = look(made, answer(200, {"status": "failed", "try": 2}), settling)
    assert (seen.verdict, three.settling) == (V.FAILED, "failed:failed")
    assert kind(look(made, answer(200, {"status": "failed", "try": 3}), settling)) == (V.INTEGRATION, D.WRONG_JOB)
    assert made.policy.schedule.settle_delay == 10_000


@pytest.mark.rule("S10")
def test_cancelling_is_waiting_and_says_so() -> None:
    seen, _ = look(contract(), answer(200, {"status": "cancelling"}))
    assert (seen.verdict, seen.cancelling) == (V.WAITING, True)


@pytest.mark.rule("S2")
def test_a_transient_state_waits_until_its_limit_in_a_row_and_a_change_starts_anew() -> None:
    made = contract(
        state=(
            '[state]\nvalue = "body.status"\n[states]\n'
            'waiting = ["running", { value = "UNKNOWN", limit = 3 }]\nsucceeded = ["ok"]\n'
        )
    )
    memory, verdicts = Memory(), []
    for status in ("UNKNOWN", "UNKNOWN", "running", "UNKNOWN", "UNKNOWN", "UNKNOWN"):
        seen, memory = look(made, answer(200, {"status": status}), memory)
        verdicts.append(seen.verdict)
    assert verdicts == [V.WAITING] * 5 + [V.UNKNOWN]
    assert "3 times in a row" in (seen.explanation or "")


@pytest.mark.rule("S2")
def test_a_503_between_does_not_end_the_row() -> None:
    made = contract(state='[state]\nvalue = "body.status"\nunknown_limit = 2\n[states]\nwaiting = ["running"]\n')
    seen, memory = look(made, answer(200, {"status": "odd"}))
    assert seen.verdict is V.WAITING
    _, memory = look(made, answer(503), memory)
    assert look(made, answer(200, {"status": "odd"}), memory)[0].verdict is V.UNKNOWN


@pytest.mark.rule("S2")
def test_a_person_must_act_with_the_states_or_the_answers_own_explanation() -> None:
    made = contract(
        '[needs_human]\nexplanation = "body.why"\n[[rules]]\nwhen = "body.blocked"\n'
        'state_from = "body.status"\ncategory = "needs_human"\nexplanation = "blocked"\n'
    )
    seen, _ = look(made, answer(200, {"status": "succeeded", "blocked": True}))
    assert (seen.verdict, seen.state, seen.explanation) == (V.NEEDS_HUMAN, "succeeded", "blocked")
    seen, _ = look(made, answer(200, {"status": "paused", "why": "approve it"}))
    assert (seen.verdict, seen.explanation) == (V.NEEDS_HUMAN, "approve it")


def test_success_can_depend_on_what_was_asked() -> None:
    made = contract(
        '[[rules]]\nwhen = "contains(submitted.expected_states, body.status)"\n'
        'state_from = "body.status"\ncategory = "succeeded"\n'
    )
    assert look(made, answer(200, {"status": "stopped"}), expected_states=("stopped",))[0].verdict is V.SUCCEEDED
    assert look(made, answer(200, {"status": "stopped"}), expected_states=("live",))[0].verdict is V.UNKNOWN


@pytest.mark.rule("H2")
def test_a_redirect_is_success_only_where_the_contract_says_so_and_the_host_is_allowed() -> None:
    made = contract('[redirect]\nstatuses = [303]\nfield = "url"\nhosts = ["files.example.test"]\n')
    for location in ("https://files.example.test/r", "https://api.example.test/r"):
        seen, _ = look(made, answer(303, None, {"Location": location}))
        assert seen.verdict is V.SUCCEEDED
        assert seen.result is not None
        assert seen.result.fields == {"url": location}
    relative = look(made, answer(303, None, {"Location": "../results/1"}))[0]
    assert relative.result is not None
    assert relative.result.fields == {"url": "https://api.example.test/v1/results/1"}
    assert kind(look(made, answer(303, None, {"Location": "https://evil.test/r"}))) == (V.INTEGRATION, D.FOREIGN_ORIGIN)
    assert kind(look(made, answer(303))) == (V.INTEGRATION, D.SUCCEEDED_WITHOUT_RESULT)
    assert kind(look(made, answer(302, None, {"Location": "https://api.example.test/r"}))) == (
        V.INTEGRATION,
        D.UNEXPECTED_STATUS,
    )
    assert kind(look(contract(), answer(302, None, {"Location": "https://evil.test/r"}))) == (
        V.INTEGRATION,
        D.FOREIGN_ORIGIN,
    )


@pytest.mark.rule("K3")
@pytest.mark.parametrize(
    "location",
    [
        "http://api.example.test/x",
        "https://u:p@api.example.test/",
        "https://api.example.test:444/",
        "file:///x",
        "data:,x",
        "//evil.test/",
        "https://evil.test\\@api.example.test/",
        "https://[fe80::1%25eth0]/",
        "https://2130706433/",
        "http://169.254.169.254/latest",
        "https://api.example.test/" + "x" * 10_000,
        "https://api.example.test/\r\nX: y",
    ],
)
def test_no_location_leads_anywhere_else(location: str) -> None:
    seen, memory = look(contract(), answer(202, {"status": "running"}, {"Location": location}))
    assert (seen.verdict, seen.detail) == (V.INTEGRATION, D.FOREIGN_ORIGIN)
    assert memory.next_url is None


@pytest.mark.rule("K3", "H1")
def test_the_next_address_comes_from_each_answer_and_stays_inside() -> None:
    head = contract().snapshot_text.split("[state]")[0] + 'next_url = "body.nextUri"\n'
    made = contract(head=head)
    seen, memory = look(made, answer(200, {"status": "running", "nextUri": "/v1/statement/q/2?t=x"}))
    assert (seen.verdict, memory.next_url) == (V.WAITING, "https://api.example.test/v1/statement/q/2?t=x")
    request = requests.status_request(made, operation(memory), "c")
    assert request.url == memory.next_url
    seen, after = look(made, answer(200, {"status": "running", "nextUri": "https://evil.test/2"}), memory)
    assert (seen.verdict, seen.detail) == (V.INTEGRATION, D.FOREIGN_ORIGIN)
    assert after.next_url == memory.next_url
    assert look(made, answer(503), memory)[1].next_url == memory.next_url
    assert look(made, answer(200, {"status": "running"}), memory)[1].next_url is None


CHAIN = """
[status.remember]
build = "body.executable.url"
[[status.then]]
when = "body.executable.url"
step = "build"
[[steps]]
name = "build"
url = "{seen.build}api/json"
[[rules]]
step = "status"
when = "body.cancelled"
state = "cancelled in the queue"
category = "cancelled"
[[rules]]
step = "status"
when = "body.why"
state = "queued"
category = "waiting"
[[rules]]
step = "build"
when = "body.building"
state = "running"
"""


def test_a_chain_sends_one_request_a_poll_and_remembers_where_it_is() -> None:
    made = contract(
        CHAIN,
        state=(
            '[state]\nvalue = "body.result"\n[states]\nwaiting = ["running"]\n'
            'succeeded = ["SUCCESS"]\nfailed = ["FAILURE"]\n'
        ),
    )
    seen, memory = look(made, answer(200, {"why": "no node"}))
    assert (seen.verdict, seen.state, seen.continues, memory.step) == (V.WAITING, "queued", False, None)
    assert look(made, answer(200, {"cancelled": True}))[0].verdict is V.CANCELLED
    seen, memory = look(made, answer(200, {"executable": {"url": "https://api.example.test/job/7/"}}), memory)
    assert (seen.verdict, seen.continues, memory.step) == (V.WAITING, True, "build")
    request = requests.status_request(made, operation(memory), "c")
    assert request.url == "https://api.example.test/job/7/api/json"
    seen, memory = look(made, answer(200, {"building": True}), memory, step="build")
    assert (seen.verdict, seen.state, seen.continues, memory.step) == (V.WAITING, "running", False, "build")
    assert (
        look(made, answer(200, {"building": False, "result": "SUCCESS"}), memory, step="build")[0].verdict
        is V.SUCCEEDED
    )


@pytest.mark.rule("T10")
def test_a_long_poll_that_times_out_at_the_provider_is_waiting() -> None:
    made = contract('[long_poll]\nparameter = "wait"\nwait = 20\ntimeout_statuses = [204, 408]\n')
    for code in (204, 408):
        seen, memory = look(made, answer(code), SEEN)
        assert (seen.verdict, seen.long_poll_timeout) == (V.WAITING, True)
        assert memory.last_state == "running"


@pytest.mark.rule("A1")
def test_request_ids_and_provider_errors_are_kept() -> None:
    made = contract(
        '[request_id]\nheader = "X-Request-Id"\npath = "body.rid"\n[error]\n'
        'code = "body.e.code"\nmessage = "body.e.msg"\nretryable = "body.e.retry"\n'
    )
    body = {"status": "failed", "e": {"code": 7, "msg": "boom", "retry": False}, "rid": "b-1"}
    seen, _ = look(made, answer(200, body, {"X-Request-Id": "h-1"}))
    assert (seen.provider_error, seen.http.request_id) == ("7: boom (provider says retryable: false)", "h-1")
    assert look(made, answer(500, body))[0].http.request_id == "b-1"


@pytest.mark.rule("H1", "B6")
def test_a_submission_hands_over_id_url_parameters_and_start() -> None:
    made = contract(
        """
[params.location]
[submission.answer]
status_url = 'http.headers."operation-location"'
job_id_pattern = "https://[a-z.]+/v1/operations/([^/?]+).*"
params = { location = "body.loc" }
"""
    )
    nobody = Submitted(provider="acme", account="a", job_id="")
    headers = {"Operation-Location": "../v1/operations/op-9?v=1", "Date": "Mon, 02 Mar 2026 09:59:58 GMT"}
    got = answer(202, {"loc": "eu", "status": "queued"}, headers)
    found = from_response(made, nobody, got, "https://api.example.test/v1/jobs")
    assert found.status_url == "https://api.example.test/v1/operations/op-9?v=1"
    assert (found.job_id, found.params, found.state, found.observation) == ("op-9", {"location": "eu"}, "queued", None)
    assert found.started_at == START - 2_000
    for code, changed in (
        ("submission_failed", answer(500, {}, headers)),
        ("job_id_missing", answer(202, {}, {})),
        ("foreign_origin", answer(202, {}, {"Operation-Location": "https://evil.test/v1/operations/1"})),
        ("bad_url", answer(202, {}, {"Operation-Location": "file:///x"})),
    ):
        with pytest.raises(Refused) as caught:
            from_response(made, nobody, changed, "https://api.example.test/v1/jobs")
        assert caught.value.code == code
    with pytest.raises(Refused) as caught:
        from_response(contract(), nobody, got, "https://api.example.test/v1/jobs")
    assert caught.value.code == "no_submission_reading"
    by_path = contract('[submission.answer]\njob_id = "body.id"\n')
    with pytest.raises(Refused, match=r"not at body\.id \(submission\.answer\)"):
        from_response(by_path, nobody, answer(202, {"Id": "job-2"}), URL)


@pytest.mark.rule("O5", "E6")
def test_a_resubmission_whose_answer_was_lost_is_unknown() -> None:
    made = contract('[submission.answer]\njob_id = "body.id"\n')
    nobody = Submitted(provider="acme", account="a", job_id="")

    def outcome(brought: object) -> ActionOutcome:
        return read_submit(made, nobody, brought, URL)[0]  # type: ignore[arg-type]

    assert outcome(answer(201, {"id": "job-2"})) is ActionOutcome.DONE
    assert outcome(answer(409, {})) is ActionOutcome.REFUSED
    assert outcome(answer(502, {})) is ActionOutcome.UNKNOWN
    assert outcome(answer(200, b"{")) is ActionOutcome.UNKNOWN
    assert outcome(Fault(FaultKind.TIMEOUT, True, START)) is ActionOutcome.UNKNOWN
    assert outcome(Fault(FaultKind.CONNECTION_REFUSED, False, START)) is ActionOutcome.REFUSED


@pytest.mark.rule("E5", "O5")
@pytest.mark.parametrize(
    ("code", "body", "outcome"),
    [
        (202, {"ok": True}, "done"),
        (202, {"ok": False}, "unknown"),
        (200, {"no": "final"}, "refused"),
        (409, {}, "refused"),
        (401, {}, "refused"),
        (404, {}, "refused"),
        (500, {}, "unknown"),
        (302, {}, "unknown"),
        (202, b"", "unknown"),
    ],
)
def test_a_cancels_answer_is_done_refused_or_unknown(code: int, body: object, outcome: str) -> None:
    made = contract(
        '[cancel]\nmethod = "POST"\nurl = "https://api.example.test/c"\n'
        'confirm = { minutes = 1, checks = 1 }\ndone_when = "body.ok"\nrefused_when = "body.no"\n'
    )
    assert read_cancel(made, answer(code, body))[0].value == outcome


@pytest.mark.rule("E5", "O5")
def test_a_cancel_without_an_answer_is_unknown_unless_nothing_left() -> None:
    assert read_cancel(contract(), Fault(FaultKind.TIMEOUT, True, START))[0] is ActionOutcome.UNKNOWN
    assert read_cancel(contract(), Fault(FaultKind.NOT_SENT, False, START))[0] is ActionOutcome.REFUSED


@pytest.mark.rule("S8")
@given(st.sampled_from(["running", "compiling", "succeeded", "failed", "SUCCEEDED"]), st.integers(0, 3_000))
def test_a_stored_answer_reads_the_same_again_and_a_mended_contract_knows_more(state: str, padding: int) -> None:
    made = contract('[[success.requires]]\npath = "body.result.url"\nformat = "url"\n')
    body = {"status": state, "result": {"url": "https://api.example.test/r"}, "noise": "x" * padding}
    seen, memory = look(made, answer(200, body))
    again = reread(made, operation(memory), seen.envelope, moment()).observation
    assert (again.verdict, again.detail, again.state, again.result) == (
        seen.verdict,
        seen.detail,
        seen.state,
        seen.result,
    )
    assert again.http.answered_at == seen.http.answered_at
    assert json.loads(seen.envelope)["whole"] is (len(json.dumps(body)) <= 1_500)
    if state == "compiling":
        mended = contract(
            state=contract()
            .snapshot_text[contract().snapshot_text.index("[state]") :]
            .split("[limits]")[0]
            .replace('"queued"', '"queued", "compiling"')
        )
        assert reread(mended, operation(memory), seen.envelope, moment()).observation.verdict is V.WAITING


@pytest.mark.rule("S8")
def test_an_envelope_that_was_cut_or_is_none_of_ours_is_no_answer() -> None:
    made = contract('[error]\nmessage = "body.text"\n')
    big = {"status": "running", "text": "x" * 5_000}
    seen, memory = look(made, answer(200, big))
    assert json.loads(seen.envelope)["cut"] is True
    for stored in (seen.envelope, b"", b"[]", b"\xff"):
        again = reread(made, operation(memory), stored, moment()).observation
        assert (again.verdict, again.detail) == (V.INTEGRATION, D.UNREADABLE)


@pytest.mark.rule("S4", "S9")
@pytest.mark.parametrize(("bytes_of_it", "fetched"), [(60_000, False), (70_000, False), (70_000, True)])
def test_a_required_field_that_nothing_else_would_bring_is_kept_or_is_no_success(
    bytes_of_it: int, fetched: bool
) -> None:
    fetch = '[result]\nurl = "https://api.example.test/r"\n' if fetched else ""
    made = contract(f'[[success.requires]]\nname = "outputs"\npath = "body.outputs"\ntype = "array"\n{fetch}')
    outputs = ["x" * 10_000] * (bytes_of_it // 10_000)
    seen, _ = look(made, answer(200, {"status": "succeeded", "outputs": outputs}))
    if bytes_of_it < 65_536:
        assert (seen.verdict, seen.result and seen.result.fields) == (V.SUCCEEDED, {"outputs": outputs})
    elif fetched:
        assert (seen.verdict, seen.result and seen.result.fields) == (V.SUCCEEDED, {})
        assert "result field outputs left out: larger than 65,536 bytes" in seen.notes
    else:
        assert (seen.verdict, seen.detail) == (V.INTEGRATION, D.SUCCEEDED_WITHOUT_RESULT)
        assert seen.explanation == "body.outputs is larger than 65,536 bytes and cannot be kept"


@pytest.mark.rule("S4", "S8")
@pytest.mark.parametrize("padding", [0, 1_700, 20_000])
def test_a_mended_contract_decides_by_a_stored_answer_only_if_it_finds_all_that_it_reads(padding: int) -> None:
    made = contract('[[success.requires]]\npath = "body.result.url"\nformat = "url"\n')
    stricter = contract(
        '[success]\nforbids = ["body.active_items"]\n[[success.requires]]\npath = "body.result.url"\nformat = "url"\n'
    )
    body = {"status": "succeeded", "result": {"url": "https://api.example.test/r"}, "active_items": ["a"]}
    given = answer(200, {**body, "noise": "x" * padding})
    seen, memory = look(made, given)
    assert seen.verdict is V.SUCCEEDED
    assert reread(made, operation(memory), seen.envelope, moment()).observation.verdict is V.SUCCEEDED
    pruned = reread(stricter, operation(memory), seen.envelope, moment())
    assert pruned.whole is (padding == 0)
    beside = body_beside(seen.envelope, given.body)
    assert (beside is None) is (padding == 0)
    again = reread(stricter, operation(memory), seen.envelope, moment(), beside)
    assert again.whole is (padding < 16_384)
    if again.whole:
        live, _ = look(stricter, given)
        assert (again.observation.verdict, again.observation.detail) == (live.verdict, live.detail)
        assert live.detail is D.SUCCESS_CONTRADICTED


@pytest.mark.rule("S8")
def test_a_header_that_the_contract_of_then_did_not_look_for_is_not_taken_for_absent() -> None:
    rule = """[[rules]]\nwhen = 'http.headers."x-state" == `"gone"`'\ncategory = "failed"\n"""
    made, asks = contract(), contract(rule)
    seen, memory = look(made, answer(200, {"status": "running"}, {"x-state": "gone"}))
    assert not reread(asks, operation(memory), seen.envelope, moment()).whole
    for headers in ({}, {"x-state": "here"}):
        seen, memory = look(asks, answer(200, {"status": "running"}, headers))
        assert reread(asks, operation(memory), seen.envelope, moment()).whole


def test_an_explanation_names_the_rule_and_what_was_read() -> None:
    made = contract('[[rules]]\nname = "over"\nwhen = "body.n > `5`"\ncategory = "failed"\n')
    told = explain(made, operation(), answer(200, {"status": "running", "n": 3}), URL)
    assert told.rule == "states.waiting"
    assert told.read == (("body.n > `5`", "false"), ("body.status", "running"))
    assert explain(made, operation(), answer(200, {"n": 7}), URL).rule == 'rules[1] "over"'
    assert explain(made, operation(), answer(200, b"{"), URL).body_fault is not None
    assert explain(made, operation(), answer(503), URL).rule == "HTTP 503"
