"""The story of the audit, the fixed JSON shapes, and the figures of the report."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.questions import made

from pollcore.escalation import choices
from pollcore.facts import (
    MINUTE,
    AuditEvent,
    DelaySource,
    EventName,
    Instant,
    ResultPointer,
    Status,
    StopReason,
    Verdict,
)
from pollcore.report import report
from pollcore.story import line, story, visible
from pollcore.views import event_view, operation_view

E = EventName
ID = made.operation().operation_id


def event(time: str, name: EventName, **fields: object) -> AuditEvent:
    return AuditEvent(at=made.at(time).wall, event=name, operation_id=ID, **fields)


LOCAL, GUIDED = DelaySource.LOCAL_BACKOFF, DelaySource.PROVIDER_RETRY_AFTER
ARTICLE = [
    event("10:20:00", E.SUBMITTED, text="exp_71c", deadline_at=made.DEADLINE, max_requests=12, decision="wait"),
    event("10:20:05", E.POLLED, state="queued", http=200, next_poll_at=made.at("10:20:14").wall, delay_source=LOCAL),
    event("10:20:14", E.POLLED, state="running", http=200, next_poll_at=made.at("10:20:31").wall, delay_source=LOCAL),
    event(
        "10:20:31",
        E.POLLED,
        http=503,
        retry_after="Retry-After 120",
        next_poll_at=made.at("10:22:31").wall,
        delay_source=GUIDED,
    ),
    event("10:22:31", E.POLLED, state="running", http=200, next_poll_at=made.at("10:23:48").wall, delay_source=LOCAL),
    event("10:58:00", E.POLLED, state="running", http=200, decision="escalate", reason="request_budget_exhausted"),
]


@pytest.mark.rule("A2")
def test_the_articles_story_is_told_word_for_word():
    assert list(story(ARTICLE)) == [
        "10:20:00 submitted job exp_71c, deadline 11:00:00, budget 12",
        "10:20:05 polled, state queued, next poll 10:20:14 from local backoff",
        "10:20:14 polled, state running, next poll 10:20:31 from local backoff",
        "10:20:31 received 503, Retry-After 120, next poll 10:22:31 from provider guidance",
        "10:22:31 polled, state running, next poll 10:23:48 from local backoff",
        "10:58:00 polled, state running, request budget exhausted, escalated",
    ]


@pytest.mark.rule("A2")
def test_a_date_line_comes_when_the_day_changes_and_times_of_another_day_carry_it():
    later = AuditEvent(at=Instant(made.START + 86_400_000), event=E.POLLED, state="running", next_poll_at=made.START)
    assert list(story([ARTICLE[0], later]))[1:] == [
        "2026-03-03",
        "10:20:00 polled, state running, next poll 2026-03-02 10:20:00",
    ]
    assert next(story([later], after=made.START)) == "2026-03-03"


@pytest.mark.rule("A2")
@pytest.mark.parametrize("name", EventName)
@given(st.data())
def test_every_event_is_one_harmless_line(name, data):
    hostile = st.one_of(st.none(), st.text(max_size=20), st.just("a\x1b[2J\nb\u202e"))
    found = AuditEvent(
        at=made.START,
        event=name,
        state=data.draw(hostile),
        http=data.draw(st.sampled_from((None, 200, 503))),
        reason=data.draw(st.sampled_from((None, "job_failed"))),
        text=data.draw(hostile),
        detail=data.draw(hostile),
        operator=data.draw(hostile),
        notes=("clock_skew",),
    )
    told = line(found)
    assert told.startswith("10:20:00 ")
    assert len(told) > len("10:20:00 ")
    assert told.isprintable()
    assert "clock skew" in told


@pytest.mark.rule("A2", "G4")
def test_the_console_may_bring_its_own_way_of_making_text_harmless():
    assert line(ARTICLE[1], harmless=str.upper).endswith("STATE QUEUED, NEXT POLL 10:20:14 FROM LOCAL BACKOFF")
    assert visible("a\x1b\u202eb\n") == "a\\x1b\\x202eb "


@pytest.mark.rule("A2", "A5")
def test_a_grant_says_who_extended_what_to_where():
    told = line(
        event(
            "10:59:00",
            E.GRANTED,
            decision="extend",
            detail="extend 15 min / 4 checks",
            operator="alice@ops-1 (pts/3)",
            deadline_at=made.at("11:15:00").wall,
            max_requests=16,
            next_poll_at=made.at("10:59:02").wall,
            delay_source=DelaySource.MANUAL_EXTENSION,
        )
    )
    assert told == (
        "10:59:00 granted extend 15 min / 4 checks by alice@ops-1 (pts/3), deadline 11:15:00, budget 16, "
        "next poll 10:59:02 from manual extension"
    )


@pytest.mark.rule("A2", "A5")
def test_a_check_that_was_granted_is_told_as_its_card_told_it_and_never_as_an_extension():
    unchanged = "last_possible_check 2026-03-02T11:05:41.154Z -> 2026-03-02T11:05:41.154Z"
    told = line(
        event(
            "10:59:00",
            E.GRANTED,
            decision="check_once",
            detail="check once",
            operator="alice",
            next_poll_at=made.at("10:59:02").wall,
            delay_source=DelaySource.MANUAL_EXTENSION,
            notes=(unchanged, "status_requests 12 -> 12", "guard: keys 2"),
        )
    )
    assert told == (
        "10:59:00 granted check once by alice, next poll 10:59:02 from this grant (last possible check: about 11:05:41)"
    )


@pytest.mark.rule("A2")
@pytest.mark.parametrize(
    ("note", "words"),
    [
        ("deadline 2026-03-02T11:00:00Z -> 2026-03-03T11:15:00Z", "deadline 11:00:00 -> 2026-03-03 11:15:00"),
        ("useful_until none -> 2026-03-02T11:15:00Z", "useful until none -> 11:15:00"),
        ("last_possible_check 2026-03-02T11:00:00Z -> none", "last possible check: none"),
        (f"contract {'a' * 64} -> {'b' * 64}", "contract aaaaaaaaaaaa -> bbbbbbbbbbbb"),
        ("credential per_call -> per_session", "credential per_call -> per_session"),
        ("hint_invalid: Retry-After in the past", "hint invalid: Retry-After in the past"),
        ("clock_skew 4000 ms", "clock skew 4000 ms"),
        ("list_jobs: 3 children", "list_jobs: 3 children"),
    ],
)
def test_notes_are_told_without_the_keys_of_the_record(note, words):
    assert line(event("10:59:00", E.POLLED, state="running", notes=(note,))).endswith(f"({words})")


# --- views ------------------------------------------------------------------------------------------------------------

FIXED = {
    *("operation_id", "provider", "account", "provider_job_id", "label", "status", "last_known_state", "last_http"),
    *("started_at", "deadline_at", "useful_until", "provider_expires_at", "max_status_requests"),
    *("status_requests_used", "max_transport_failures", "transport_failures_used", "max_rate_limited"),
    *("rate_limited_used", "completed_polls", "request_fingerprint", "expected_states", "caller", "next_poll_at"),
    *("delay_source", "stop_reason", "stop_detail", "result", "escalation", "approval", "extensions"),
    *("contract_digest", "credential"),
}
FIXED_EVENT = {
    *("at", "event", "state_before", "state", "http", "planned_at", "delay_source", "next_poll_at", "requests_used"),
    *("max_requests", "deadline_at", "decision", "reason", "detail", "operator", "caller"),
}
FIXED_QUESTION = {"id", "cause", "reason", "detail", "asked_at", "choices"}
FIXED_CHOICE = {"kind", "key", "label", "minutes", "checks", "transport_failures", "rate_limited", "credential"}


@pytest.mark.rule("A1", "K4")
def test_show_has_every_fixed_name_and_masks_the_result_pointer():
    op = made.stopped(StopReason.INTEGRATION_FAILURE)
    asked = made.question(StopReason.INTEGRATION_FAILURE, op)
    found = choices(op, asked, policy=made.POLICY, now=made.NOW, circumstances=made.EVERYTHING)
    view = operation_view(op, question=asked, choices=found)
    assert set(view) >= FIXED
    assert view["last_http"] == {"code": 200, "at": "2026-03-02T10:58:00Z", "request_id": "req-9"}
    assert view["deadline_at"] == "2026-03-02T11:00:00Z"
    assert view["status"] == "escalated"
    assert set(view["escalation"]) >= FIXED_QUESTION
    assert all(set(choice) >= FIXED_CHOICE for choice in view["escalation"]["choices"])
    assert "TOPSECRET" not in json.dumps(view)
    assert "idem-1" not in json.dumps(view)
    assert "TOPSECRET" in json.dumps(operation_view(op, reveal=True))


@pytest.mark.rule("K4")
def test_pre_signed_links_are_masked_wherever_they_hide_in_a_result():
    fields = {"files": [{"href": "https://u:pw@x.test/a?sig=S1"}], "relative": "/a?sig=S2", "count": 3}
    op = made.operation(status=Status.SUCCEEDED, result=ResultPointer(fields))
    text = json.dumps(operation_view(op))
    assert not any(secret in text for secret in ("S1", "S2", "pw"))
    assert operation_view(op)["result"]["fields"]["count"] == 3


@pytest.mark.rule("A1")
def test_an_event_has_every_fixed_name_with_times_in_utc():
    view = event_view(ARTICLE[3])
    assert set(view) >= FIXED_EVENT
    assert (view["at"], view["next_poll_at"]) == ("2026-03-02T10:20:31Z", "2026-03-02T10:22:31Z")
    assert (view["event"], view["delay_source"]) == ("polled", "provider_retry_after")


# --- report -----------------------------------------------------------------------------------------------------------


def sent(time: str, number: int, **fields: object) -> AuditEvent:
    return event(time, E.SENT, requests_used=number, **{"max_requests": 12, "deadline_at": made.DEADLINE, **fields})


def figures(events, op=None, questions=(), now="11:10:00", **more):
    op = op or made.stopped(StopReason.REQUEST_BUDGET_EXHAUSTED)
    return report([op], questions, {ID: events}, now=made.at(now).wall, **more)


@pytest.mark.rule("A5")
def test_the_articles_story_adds_up():
    polls = [sent("10:20:05", 1), ARTICLE[1], sent("10:20:14", 2), ARTICLE[2], sent("10:20:31", 3), ARTICLE[3]]
    stop = msgspec.structs.replace(ARTICLE[5], requests_used=12, max_requests=12, deadline_at=made.DEADLINE)
    found = figures([ARTICLE[0], *polls, sent("10:22:31", 4), ARTICLE[4], stop])
    assert found.contradictions == ()
    assert (found.guidance_given, found.guidance_obeyed, found.share_guidance_obeyed) == (1, 1, 1.0)
    assert (found.requests, found.requests_permitted) == (4, 4)
    assert found.fixed_interval_requests == 38 * 6
    assert (found.escalated, found.share_ended_or_escalated) == (1, 1.0)


@pytest.mark.rule("A5")
def test_a_request_inside_open_guidance_is_guidance_not_obeyed():
    found = figures([ARTICLE[3], sent("10:22:30", 4)])
    assert (found.guidance_given, found.guidance_obeyed) == (1, 0)


@pytest.mark.rule("A5", "B3")
def test_requests_beyond_budget_or_deadline_are_not_permitted_and_listed():
    found = figures([sent("10:30:00", 13), sent("11:00:00", 5)])
    assert found.requests_permitted == 0
    assert "13 was sent, 12 were allowed" in found.contradictions[0].text
    assert "the deadline was 2026-03-02T11:00:00Z" in found.contradictions[1].text


@pytest.mark.rule("A5")
@pytest.mark.parametrize(
    ("stop", "says"),
    [
        ({"reason": "deadline_exceeded", "deadline_at": made.DEADLINE}, "before the deadline"),
        ({"reason": "request_budget_exhausted", "requests_used": 7, "max_requests": 12}, "only 7 of 12"),
        ({"reason": "job_failed", "event": E.STOPPED}, "no answer said so"),
        ({"reason": "authorization_denied", "http": 200}, "HTTP 200"),
    ],
)
def test_a_stop_reason_that_the_record_does_not_bear_out_is_a_contradiction(stop, says):
    broken = msgspec.structs.replace(ARTICLE[5], **stop)
    assert says in figures([broken]).contradictions[0].text


@pytest.mark.rule("A5")
def test_a_timeout_whose_last_state_was_a_success_is_a_contradiction():
    polled = event("10:59:00", E.POLLED, state="succeeded", http=200)
    stop = event("11:00:00", E.STOPPED, reason="deadline_exceeded", decision="escalate", deadline_at=made.DEADLINE)
    op = made.stopped(StopReason.DEADLINE_EXCEEDED)
    found = figures([polled, stop], op, states={"sha-old": {"succeeded": Verdict.SUCCEEDED}})
    assert "last parsed state was succeeded" in found.contradictions[0].text
    assert figures([polled, stop], op).contradictions == ()


@pytest.mark.rule("A5", "T9")
def test_a_stop_by_the_boot_clock_after_a_clock_step_is_no_contradiction():
    stop = event("10:30:00", E.STOPPED, reason="deadline_exceeded", deadline_at=made.DEADLINE)
    assert figures([stop]).contradictions
    assert not figures([event("10:29:00", E.CLOCK_STEP), stop]).contradictions


@pytest.mark.rule("A5")
def test_a_wait_past_its_deadline_that_nobody_stopped_lowers_the_share_and_is_listed():
    found = figures([], made.operation())
    assert (found.overdue, found.share_ended_or_escalated) == (1, 0.0)
    assert "still waiting after its deadline" in found.contradictions[0].text
    inside = figures([], made.operation(), now="10:30:00")
    assert (inside.within_limits, inside.share_ended_or_escalated) == (1, None)


@pytest.mark.rule("A5")
def test_time_to_decision_counts_human_decisions_and_open_questions_apart():
    op = made.stopped(StopReason.UNKNOWN_STATE)
    base = made.question(StopReason.UNKNOWN_STATE, op)
    decided = [
        msgspec.structs.replace(base, decided_at=Instant(made.STOPPED_AT + n * MINUTE), decision="close")
        for n in (1, 3, 9)
    ]
    taken = msgspec.structs.replace(base, decided_at=made.STOPPED_AT, decision="superseded")
    found = figures([], op, [*decided, taken, base], now="11:10:00")
    assert (found.decisions, found.median_time_to_decision, found.longest_time_to_decision) == (
        3,
        3 * MINUTE,
        9 * MINUTE,
    )
    assert (found.open_questions, found.oldest_open_question) == (1, 12 * MINUTE)


@pytest.mark.rule("A5")
def test_the_report_says_who_extended_what():
    granted = event("10:59:00", E.GRANTED, decision="extend", detail="extend 15 min / 4 checks", operator="alice")
    assert [(found.operator, found.what) for found in figures([granted]).extensions] == [
        ("alice", "extend 15 min / 4 checks")
    ]
