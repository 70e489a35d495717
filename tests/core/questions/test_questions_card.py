"""The card: E3's lines in E3's order, the digest that a grant is bound to, and one card for one cause."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.questions import made

from pollcore.card import Asked, Card, card, digest, group
from pollcore.escalation import CredentialUse, choices
from pollcore.facts import (
    LEAVE_THE_WAIT_GOING,
    MINUTE,
    SECOND,
    HttpFact,
    Instant,
    Moment,
    Policy,
    StopReason,
)

R = StopReason


def drawn(
    reason=R.REQUEST_BUDGET_EXHAUSTED, op=None, *, now=made.NOW, policy=made.POLICY, facts=made.EVERYTHING, **q
) -> Card:
    op = op or made.stopped(reason)
    asked = made.question(reason, op, **q)
    found = choices(op, asked, policy=policy, now=now, circumstances=facts)
    return card(op, asked, found, now=now, circumstances=facts)


@pytest.mark.rule("E3")
def test_the_card_has_the_articles_lines_in_the_articles_order():
    text = drawn(now=made.at("11:00:00")).text()
    assert list(text[:9]) == [
        "External job needs a decision",
        "Operation: report-export-2026-03-02-01",
        "Provider job: exp_71c",
        "Last state: running",
        "Elapsed time: 40 minutes",
        "Status requests: 12 of 12",
        "Last HTTP result: 200 at 10:58 UTC",
        "Stopped because: request_budget_exhausted",
        "Safe options: 1 extend 15 min / 4 checks, 2 extend 60 min / 10 checks, 3 cancel at provider, "
        "4 inspect, 5 close",
    ]


@pytest.mark.rule("E4", "G4")
def test_a_limit_that_has_passed_is_said_to_be_counted_from_the_key():
    """What is granted is the span: the time beside it moves on while the card is open."""
    before, after = drawn(now=made.at("10:59:00")).text(), drawn(now=made.at("11:01:00")).text()
    assert "    deadline 11:00:00 UTC -> 11:15:00 UTC" in before
    assert "    deadline 11:00:00 UTC -> 11:16:00 UTC, counted from your key" in after


@pytest.mark.rule("E3")
def test_each_choice_on_the_card_shows_old_and_new_limits_and_what_it_leads_to():
    text = "\n".join(drawn().text())
    assert (
        "[1] extend 15 min / 4 checks\n    deadline 11:00:00 UTC -> 11:15:00 UTC\n    status requests 12 -> 16\n"
        in text
    )
    assert "last possible check: " in text
    assert "warning: irreversible" in text


@pytest.mark.rule("E3", "K4", "G7")
def test_a_call_card_shows_the_request_without_any_secret():
    shown = drawn(R.CALL_APPROVAL)
    text = "\n".join(shown.text())
    for line in (
        "Method: GET",
        "Host: https://api.acme.test",
        "Path: /v1/jobs/exp_71c (its query is masked)",
        "Request number: 6 of 12",
        "Can reveal: job metadata",
        "Credential: acme-key",
    ):
        assert line in text
    assert "SECRETSIG" not in text
    assert "TOPSECRET" not in "\n".join(drawn(R.INTEGRATION_FAILURE).text())


@pytest.mark.rule("H3")
def test_a_refused_credential_says_what_to_check():
    assert "Check: access, rotation, account scope, gateway" in drawn(R.AUTHORIZATION_DENIED).text()


@pytest.mark.rule("S2")
def test_the_nearest_known_state_is_named_as_a_hint():
    facts = msgspec.structs.replace(made.EVERYTHING, near_match="succeeded")
    assert "Nearest known state: succeeded (a hint only)" in drawn(R.UNKNOWN_STATE, facts=facts).text()


@pytest.mark.rule("G4")
@given(st.text(max_size=60))
def test_no_provider_character_starts_a_line_or_moves_the_cursor(text):
    hostile = f"run\x1b[2J\r\nStopped because: nothing\u202e{text}"
    op = made.stopped(R.UNKNOWN_STATE, last_known_state=hostile, stop_explanation=hostile)
    lines = drawn(R.UNKNOWN_STATE, op).text()
    assert all(line.isprintable() for line in lines)
    assert sum(line.startswith("Stopped because:") for line in lines) == 1


@pytest.mark.rule("G6")
def test_a_mode_changes_card_names_the_credential_and_both_modes():
    asked = made.question(R.MODE_CHANGE, None)
    found = choices(None, asked, policy=Policy(), now=made.NOW, circumstances=made.EVERYTHING)
    text = card(None, asked, found, now=made.NOW, circumstances=made.EVERYTHING).text()
    assert "Mode: per_call -> standing" in text


# --- digest -----------------------------------------------------------------------------------------------------------


def moved(op, **changes):
    return msgspec.structs.replace(op, **changes)


MATTERS: dict[str, Callable[[], Card]] = {
    "operation": lambda: drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, operation_id="other")),
    "version": lambda: drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, version=4)),
    "question": lambda: drawn(escalation_id="esc-2"),
    "contract": lambda: drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, contract_digest="sha-x")),
    "credential": lambda: drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, credential="other")),
    "deadline": lambda: drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, deadline_at=Instant(made.DEADLINE + 1))),
    "max requests": lambda: drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, max_status_requests=13)),
    "sizes": lambda: drawn(policy=msgspec.structs.replace(made.POLICY, extend=made.POLICY.extend[:1])),
    "confirm window": lambda: drawn(policy=msgspec.structs.replace(made.POLICY, cancel=None)),
    "availability": lambda: drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, extensions_used=3)),
    "used counters of a stop": lambda: drawn(op=made.stopped(R.REQUEST_BUDGET_EXHAUSTED, transport_failures_used=1)),
    "a limit passed": lambda: drawn(now=made.at("11:00:01")),
}


@pytest.mark.rule("G4")
@pytest.mark.parametrize("what", MATTERS)
def test_the_digest_changes_with_everything_that_a_grant_is_bound_to(what):
    assert digest(MATTERS[what]()) != digest(drawn())


@pytest.mark.rule("G4")
@pytest.mark.parametrize(
    "change",
    [
        {"url": made.REQUEST.url + "&x=1"},
        {"method": "POST"},
        {"body": b"{}"},
        {"headers": (("accept", "text/html"),)},
        {"origins": ("https://other.test:443",)},
    ],
)
def test_the_digest_of_an_approval_changes_with_the_exact_request(change):
    other = CredentialUse(request=msgspec.structs.replace(made.REQUEST, **change), reveals="job metadata")
    facts = msgspec.structs.replace(made.EVERYTHING, use=other)
    assert digest(drawn(R.CALL_APPROVAL, facts=facts)) != digest(drawn(R.CALL_APPROVAL))


@pytest.mark.rule("G4", "E7")
@given(st.data(), st.sampled_from(sorted(LEAVE_THE_WAIT_GOING)), st.integers(0, 11), st.integers(0, 60))
def test_in_a_wait_that_goes_on_polls_and_clocks_leave_the_digest_alone(data, reason, used, seconds):
    before = drawn(reason, made.stopped(reason))
    polled_at = Instant(made.NOW.wall + seconds * SECOND)
    polled = made.stopped(
        reason,
        status_requests_used=used,
        completed_polls=used,
        change=used,
        last_known_state=data.draw(st.text(max_size=9)),
        last_http=HttpFact(data.draw(st.sampled_from((200, 503))), polled_at, polled_at),
        next_poll_at=Instant(polled_at + 7 * SECOND),
        transport_failures_used=data.draw(st.integers(0, 2)),
    )
    assert digest(drawn(reason, polled, now=made.NOW.after(seconds * SECOND))) == digest(before)


@pytest.mark.rule("G4")
@given(made.reasons, st.integers(0, 110), st.integers(0, 110))
def test_a_clock_alone_changes_the_digest_only_by_passing_a_limit(reason, one, two):
    first, second = (drawn(reason, now=made.NOW.after(s * SECOND)) for s in sorted((one, two)))
    assert digest(first) == digest(second)  # 110 s later the deadline is still ahead


@pytest.mark.rule("G4")
@given(st.integers(0, 3600), st.integers(0, 3600))
def test_after_the_deadline_the_new_deadline_runs_with_the_clock_outside_the_digest(one, two):
    late = made.at("11:00:01")
    first, second = (drawn(R.DEADLINE_EXCEEDED, now=late.after(s * SECOND)) for s in (one, two))
    assert digest(first) == digest(second)


@pytest.mark.rule("G4")
def test_what_is_drawn_is_the_object_that_is_executed():
    op = made.stopped(R.DEADLINE_EXCEEDED)
    asked = made.question(R.DEADLINE_EXCEEDED, op)
    found = choices(op, asked, policy=made.POLICY, now=made.NOW)
    shown = card(op, asked, found, now=made.NOW)
    assert shown.choices is found
    assert [option.key for option in shown.options] == [choice.key for choice in found]


# --- one cause --------------------------------------------------------------------------------------------------------


def many(count: int, now: Moment = made.NOW) -> list[Asked]:
    found = []
    for n in range(count):
        op = made.stopped(
            R.UNKNOWN_STATE,
            operation_id=f"op-{n:04d}",
            last_known_state="paused" if n == 7 else "compiling",
            deadline_at=Instant(made.DEADLINE + (count - n) * MINUTE),
        )
        asked = made.question(R.UNKNOWN_STATE, op, escalation_id=f"esc-{n:04d}", cause="unknown_state:acme:compiling")
        found.append(Asked(op, asked, made.POLICY))
    return found


@pytest.mark.rule("E10")
def test_three_hundred_questions_of_one_cause_are_one_card_that_names_what_matters():
    other = made.stopped(R.DEADLINE_EXCEEDED)
    items = [*many(300), (other, made.question(R.DEADLINE_EXCEEDED, other, escalation_id="esc-x"), made.POLICY)]
    cards = group(items, now=made.NOW)
    assert [found.count for found in cards] == [1, 300]
    joined = cards[1]
    assert joined.cause == "unknown_state:acme:compiling"
    assert joined.operation_ids == tuple(f"op-{n:04d}" for n in range(300))
    assert [name for name, _ in joined.soonest] == [f"op-{n:04d}" for n in range(299, 294, -1)]
    assert [(found.operation_id, found.differs) for found in joined.outliers] == [("op-0007", "state paused")]
    counts = {choice.label: choice.count for choice in joined.choices}
    assert counts["check once"] == counts["close"] == 300
    assert [choice.kind.value for choice in joined.choices][-2:] == ["inspect", "close"]


@pytest.mark.rule("E10", "G4")
def test_the_list_of_a_group_is_frozen_by_its_digest():
    items = many(5)
    whole = group(items, now=made.NOW)[0].digest
    assert group(items[::-1], now=made.NOW)[0].digest == whole
    assert group(items[:4], now=made.NOW)[0].digest != whole
    moved_on = msgspec.structs.replace(items[0], operation=msgspec.structs.replace(items[0].operation, version=9))
    assert group([moved_on, *items[1:]], now=made.NOW)[0].digest != whole


@pytest.mark.rule("E10")
def test_a_choice_counts_only_the_operations_for_which_it_can_be_taken():
    items = many(3)
    used_up = msgspec.structs.replace(items[1], operation=msgspec.structs.replace(items[1].operation, holds_used=3))
    found = group([items[0], used_up, items[2]], now=made.NOW)[0]
    held = next(choice for choice in found.choices if choice.kind.value == "hold")
    assert held.operation_ids == ("op-0000", "op-0002")
    assert "op-0001" in [outlier.operation_id for outlier in found.outliers]
