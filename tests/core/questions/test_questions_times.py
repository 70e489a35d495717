"""Times on a card: what has ended stands still, what waits names no poll, what a grant counts anew is `about`."""

from __future__ import annotations

import pytest
from tests.core.questions import made
from tests.core.questions.test_questions_card import drawn, many

from pollcore.card import Card, group
from pollcore.facts import HOUR, MINUTE, AuditEvent, EventName, Instant, Status, StopReason, end_seen_at
from pollcore.story import line

R = StopReason


def said(shown: Card, label: str) -> str | None:
    """What the card says beside *label*."""
    return next((each.text for each in shown.lines if each.label == label), None)


@pytest.mark.rule("E3", "B6")
@pytest.mark.parametrize("reason", [R.JOB_FAILED, R.JOB_CANCELLED, R.JOB_EXPIRED])
def test_the_elapsed_time_of_a_job_that_ended_stands_still(reason: StopReason) -> None:
    for later in (0, HOUR):
        assert said(drawn(reason, now=made.NOW.after(later)), "Elapsed time:") == "38 minutes"


@pytest.mark.rule("E3", "B6")
def test_the_elapsed_time_of_a_job_that_may_run_goes_on() -> None:
    assert said(drawn(now=made.NOW.after(2 * MINUTE)), "Elapsed time:") == "40 minutes"
    closed = made.operation(status=Status.CLOSED)
    assert end_seen_at(closed) is None, "nobody watched how long it ran"
    assert end_seen_at(made.operation(status=Status.FAILED, last_http=None)) is None


@pytest.mark.rule("E3", "X7", "G7")
@pytest.mark.parametrize("reason", [R.FIRST_USE, R.CALL_APPROVAL, R.SESSION_APPROVAL])
def test_a_wait_that_stands_still_until_it_is_decided_names_no_next_poll(reason: StopReason) -> None:
    op = made.stopped(reason)
    assert op.next_poll_at is not None
    assert said(drawn(reason, op), "Next poll:") == "none before this is decided"


@pytest.mark.rule("E3", "E9")
def test_a_wait_that_goes_on_names_its_next_poll_and_a_held_one_does_not() -> None:
    assert said(drawn(R.OPERATOR_REQUEST), "Next poll:") == "10:58:30 UTC"
    held = made.stopped(R.OPERATOR_REQUEST, status=Status.HELD, hold_until=made.DEADLINE)
    assert said(drawn(R.OPERATOR_REQUEST, held), "Next poll:") is None


@pytest.mark.rule("E3", "B6")
def test_the_jobs_start_and_the_hand_over_have_names_of_their_own_and_the_story_tells_the_hand_over() -> None:
    handed_over = made.at("10:45:00").wall
    shown = drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, submitted_at=handed_over))
    assert said(shown, "Job started at:") == "10:20:00 UTC"
    assert said(shown, "Submitted at:") == "10:45:00 UTC"
    assert any("counted from the job's start" in text for text in shown.text())


@pytest.mark.rule("E3", "E4")
def test_a_time_that_the_grant_counts_anew_is_said_to_be_about() -> None:
    """What the story writes at the grant is seconds later than what stood on the card."""
    text = "\n".join(drawn().text())
    assert text.count("last possible check: about ") == text.count("last possible check: ") > 0
    assert "the first check goes out at about 10:58:0" in text


@pytest.mark.rule("E3", "T5")
def test_a_first_check_that_guidance_sets_is_exact() -> None:
    until = Instant(made.NOW.wall + 90_000)
    op = made.stopped(R.REQUEST_BUDGET_EXHAUSTED, guidance_until=until)
    assert "the first check goes out at 10:59:30 UTC" in "\n".join(drawn(op=op).text())


@pytest.mark.rule("E3", "E10")
def test_the_card_of_many_says_about_as_well() -> None:
    (found,) = group(many(3), now=made.NOW)
    details = [each for choice in found.choices for each in choice.details if "last possible check" in each]
    assert details
    assert all("last possible check: about " in each or "last possible check: none" in each for each in details)


@pytest.mark.rule("A2", "E5")
@pytest.mark.parametrize(
    ("outcome", "http", "detail", "ends"),
    [
        ("done", 202, "HTTP 202", "received 202, accepted"),
        ("refused", 409, "HTTP 409: the job has ended", "received 409, refused, the job has ended"),
        ("unknown", 200, "HTTP 200, but body.ok does not hold", "received 200, unknown, but body.ok does not hold"),
        ("refused", 409, "the provider says no", "received 409, refused, the provider says no"),
        ("unknown", None, None, "unknown"),
    ],
)
@pytest.mark.parametrize("name", [EventName.CANCEL_ANSWERED, EventName.FORCE_CANCEL_ANSWERED])
def test_the_answer_to_a_cancel_is_told_once_and_accepted_is_not_done(
    name: EventName, outcome: str, http: int | None, detail: str | None, ends: str
) -> None:
    fault = None if http else "timeout"
    told = line(AuditEvent(at=made.NOW.wall, event=name, decision=outcome, http=http, detail=detail, fault=fault))
    assert told.endswith(f"answered, which does not mean cancelled, {'timeout, ' if http is None else ''}{ends}")
