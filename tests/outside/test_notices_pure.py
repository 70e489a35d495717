"""What is told, when and in which words: pure, over records that a test lays out."""

from __future__ import annotations

import importlib.util
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollconsole import bridge
from pollcore.adapters.config import parse_config
from pollcore.facts import (
    HOUR,
    MINUTE,
    SECOND,
    BootMs,
    Escalation,
    HttpFact,
    Instant,
    Moment,
    Operation,
    Status,
    StopReason,
)
from pollcore.notices import (
    LIMIT_TRIES,
    Item,
    Ledger,
    NoticeKind,
    Rules,
    Seen,
    begin,
    composed,
    due_deliveries,
    is_due,
    is_quiet,
    looked,
    message,
    settled,
    tried,
)
from pollcore.notices.look import AGAIN_MS
from pollcore.notices.model import MAX_ITEMS, MAX_TOLD
from tests.console.cli.conftest import HOSTILE, NOW, make_operation

ALL = Rules(events=tuple(NoticeKind), group_ms=30 * SECOND, per_hour=2)


def asked(number: int = 1, cause: str = "", **changes: Any) -> Escalation:
    fields: dict[str, Any] = {
        "escalation_id": f"esc-{number}",
        "operation_id": f"op-{number}",
        "reason": StopReason.UNKNOWN_STATE,
        "detail": None,
        "cause": cause or f"cause-{number}",
        "asked_at": Instant(NOW.wall + number),
        "version": 1,
    }
    return Escalation(**{**fields, **changes})


def seen(*questions: Escalation, **changes: Any) -> Seen:
    live = {q.operation_id: make_operation(q.operation_id, Status.ESCALATED) for q in questions if q.operation_id}
    return Seen(**{"change": 7, "questions": questions, "live": live, **changes})


def later(ms: int) -> Moment:
    return NOW.after(ms)


def fresh(rules: Rules = ALL) -> Ledger:
    return begin(NOW, seen())


@pytest.mark.rule("E7", "E10")
def test_what_is_open_at_the_first_start_is_never_told_and_what_comes_is_told_once() -> None:
    old = asked(1)
    ledger = begin(NOW, seen(old))
    for step in range(3):
        ledger = looked(ledger, ALL, later(step * SECOND), seen(old, asked(2)))
    assert [(item.kind, item.ids) for item in ledger.items] == [(NoticeKind.NEW_CARD, ("op-2",))]
    # also after a restart: the ledger is what is kept
    again = msgspec.json.decode(msgspec.json.encode(ledger), type=Ledger)
    assert again == ledger
    assert looked(again, ALL, later(9 * SECOND), seen(old, asked(2))).items == ledger.items


@pytest.mark.rule("E10")
def test_a_cause_is_told_once_and_again_only_when_it_grew_and_an_hour_passed() -> None:
    ledger = looked(fresh(), ALL, NOW, seen(*(asked(n, "down") for n in range(1, 400))))
    assert [(item.key, item.kind) for item in ledger.items] == [("down", NoticeKind.NEW_CARD)]
    ledger = composed(ledger, NOW.wall, "t", "b", ("a",))
    many = [asked(n, "down") for n in range(1, 500)]
    assert looked(ledger, ALL, later(AGAIN_MS - 1), seen(*many)).items == ()
    ledger = looked(ledger, ALL, later(AGAIN_MS), seen(*many[:-50]))
    assert len(ledger.items) == 1
    # it did not grow since
    ledger = looked(composed(ledger, NOW.wall, "t", "b", ()), ALL, later(3 * AGAIN_MS), seen(*many[:-50]))
    assert ledger.items == ()
    # it is over, and comes anew
    ledger = looked(ledger, ALL, later(3 * AGAIN_MS), seen())
    assert len(looked(ledger, ALL, later(3 * AGAIN_MS), seen(asked(900, "down"))).items) == 1


def test_a_card_that_was_decided_before_its_message_goes_out_is_not_told_and_counts_are_of_now() -> None:
    questions = [asked(n, "down") for n in range(1, 4)]
    ledger = looked(fresh(), ALL, NOW, seen(*questions, asked(9)))
    ledger = settled(ledger, questions[:2], {})
    (item,) = ledger.items
    assert (item.key, item.count) == ("down", 2)
    assert settled(ledger, [], {}).items == ()


@pytest.mark.rule("G7")
def test_an_expiring_card_is_told_once_at_once_and_what_an_operator_opened_is_not() -> None:
    question = asked(1, reason=StopReason.CALL_APPROVAL, expires_at=Instant(NOW.wall + 120 * SECOND))
    mine = asked(2, reason=StopReason.OPERATOR_REQUEST)
    ledger = begin(NOW, seen(question))
    assert looked(ledger, ALL, later(59 * SECOND), seen(question, mine)).items == ()
    ledger = looked(ledger, ALL, later(60 * SECOND), seen(question, mine))
    (item,) = ledger.items
    assert (item.kind, item.until) == (NoticeKind.EXPIRING_CARD, question.expires_at)
    assert is_due(ledger, ALL, later(60 * SECOND).wall, 0)
    assert looked(ledger, ALL, later(61 * SECOND), seen(question)).items == (item,)


@pytest.mark.rule("B5")
def test_a_near_deadline_is_told_once_and_again_after_an_extension_but_a_short_wait_is_not_near_at_its_start() -> None:
    def look(ledger: Ledger, operation: Operation, at: Moment) -> Ledger:
        live = {operation.operation_id: operation}
        return looked(ledger, ALL, at, seen(live=live, deadlines=(operation,)))

    at = Instant(NOW.wall + HOUR)
    operation = make_operation(submitted_at=NOW.wall, deadline_at=at, deadline_boot=BootMs(NOW.boot + HOUR))
    ledger = look(fresh(), operation, later(44 * MINUTE))
    assert ledger.items == ()
    ledger = look(ledger, operation, later(45 * MINUTE))
    assert [(item.kind, item.until, item.count) for item in ledger.items] == [(NoticeKind.DEADLINE_NEAR, at, 1)]
    assert look(ledger, operation, later(50 * MINUTE)).items == ledger.items
    longer = msgspec.structs.replace(
        operation, deadline_at=Instant(at + MINUTE), deadline_boot=BootMs(NOW.boot + HOUR + MINUTE)
    )
    assert look(ledger, longer, later(50 * MINUTE)).items[0].count == 2
    short = make_operation(
        submitted_at=NOW.wall, deadline_at=Instant(NOW.wall + 4 * MINUTE), deadline_boot=BootMs(NOW.boot + 4 * MINUTE)
    )
    assert look(fresh(), short, later(2 * MINUTE)).items == ()
    assert len(look(fresh(), short, later(3 * MINUTE)).items) == 1


def test_ends_are_told_once_by_provider_and_fate_and_none_that_came_before_the_first_start() -> None:
    heard = HttpFact(200, NOW.wall, NOW.wall)
    before = HttpFact(200, Instant(NOW.wall - 5), Instant(NOW.wall - 5))
    done = [make_operation(f"op-{n}", Status.SUCCEEDED, last_http=heard) for n in range(3)]
    old = make_operation("op-old", Status.FAILED, last_http=before, submitted_at=Instant(NOW.wall - 9))
    closed = make_operation("op-closed", Status.CLOSED, last_http=heard)
    failed = make_operation("op-asks", Status.FAILED, last_http=heard)
    look = seen(asked(1, operation_id="op-asks"), ended=(*done, old, closed, failed))
    ledger = looked(fresh(), ALL, NOW, look)
    ends = [item for item in ledger.items if item.kind is NoticeKind.FINISHED]
    assert [(item.what, item.count, item.ids) for item in ends] == [("succeeded", 3, ("op-0", "op-1", "op-2"))]
    assert looked(ledger, ALL, NOW, look).items == ledger.items
    # it ended before our eyes: whatever its times say
    alive = seen(ended=(old,), was_live=frozenset({"op-old"}))
    assert len(looked(fresh(), ALL, NOW, alive).items) == 1


@given(minute=st.integers(0, 1439), start=st.integers(0, 1439), end=st.integers(0, 1439))
def test_quiet_hours_are_one_stretch_of_the_day_also_past_midnight(minute: int, start: int, end: int) -> None:
    if start == end:
        return
    inside = (minute - start) % 1440 < (end - start) % 1440
    assert is_quiet(Rules(quiet=(start, end)), minute) == inside
    assert not is_quiet(Rules(), minute)


def test_a_message_waits_for_its_window_quiet_hours_and_the_limit_of_an_hour() -> None:
    rules = msgspec.structs.replace(ALL, quiet=(22 * 60, 7 * 60))
    ledger = looked(fresh(), rules, NOW, seen(asked(1)))
    noon, night = 12 * 60, 3 * 60
    assert not is_due(ledger, rules, later(29 * SECOND).wall, noon)
    assert is_due(ledger, rules, later(30 * SECOND).wall, noon)
    assert not is_due(ledger, rules, later(30 * SECOND).wall, night)
    full = msgspec.structs.replace(ledger, sent=(NOW.wall, NOW.wall))
    assert not is_due(full, rules, later(30 * SECOND).wall, noon)
    assert is_due(full, rules, later(HOUR).wall, noon)
    # a clock that was put back holds nothing
    assert is_due(ledger, rules, Instant(NOW.wall - HOUR), noon)


def test_a_message_that_does_not_arrive_is_tried_a_bounded_number_of_times() -> None:
    ledger = composed(looked(fresh(), ALL, NOW, seen(asked(1))), NOW.wall, "t", "b", ("a", "b"))
    now, tries = NOW, 0
    while ledger.deliveries:
        now = now.after(HOUR)
        (delivery,) = due_deliveries(ledger, ALL, now.wall, 0)
        tries += 1
        failed: dict[str, str | None] = dict.fromkeys(delivery.to, "it hangs")
        if tries == 1:
            failed["b"] = None
        ledger = tried(ledger, delivery, now.wall, failed)
        assert due_deliveries(ledger, ALL, now.wall, 0) == ()
        assert tries <= LIMIT_TRIES
    assert tries == LIMIT_TRIES
    assert (ledger.outcomes["a"].gave_up, ledger.outcomes["a"].why) == (1, "it hangs")
    assert (ledger.outcomes["b"].gave_up, ledger.outcomes["b"].sent_at) == (0, NOW.wall + HOUR)


@given(provider=st.text(max_size=90), what=st.text(max_size=90), ids=st.lists(st.text(max_size=90), max_size=9))
@pytest.mark.rule("K1", "G5")
def test_words_are_plain_ascii_whatever_the_names_are_and_hold_no_link(
    provider: str, what: str, ids: list[str]
) -> None:
    item = Item(
        kind=NoticeKind.NEW_CARD, key=HOSTILE, provider=provider, what=what, at=NOW.wall, count=len(ids), ids=tuple(ids)
    )
    title, body = message([item], 0, HOSTILE)
    for line in (title, *body.split("\n")):
        assert line.isascii()
        assert line.isprintable()
        assert "://" not in line
        assert not set(line) & set("<>`[]{}@|\\")
    assert "in the console" in body


def test_what_is_kept_and_told_is_bounded() -> None:
    many = [asked(n) for n in range(1, MAX_TOLD + 500)]
    ledger = looked(fresh(), ALL, NOW, seen(*many))
    assert (len(ledger.items), ledger.more) == (MAX_ITEMS, len(many) - MAX_ITEMS)
    assert len(ledger.cards) == MAX_TOLD
    ledger = composed(ledger, NOW.wall, "t", "b", ())
    # those that were forgotten are told apart by the time at which they were asked
    assert looked(ledger, ALL, later(SECOND), seen(*many)).items == ()
    newer = asked(99_999, asked_at=Instant(NOW.wall + HOUR))
    assert len(looked(ledger, ALL, later(SECOND), seen(*many, newer)).items) == 1
    _, body = message(looked(fresh(), ALL, NOW, seen(*many)).items, 7, "h")
    assert len(body.split("\n")) <= 15


def test_a_library_that_is_asked_for_and_absent_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[notices]\nevents = ["finished"]\n[metrics]\nlisten = "127.0.0.1:9464"\n'
    assert bridge.missing_extras(parse_config(text)) == []
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    mends = dict(bridge.missing_extras(parse_config(text)))
    assert "pip install apprise" in mends["notices"]
    assert "pip install prometheus-client" in mends["metrics"]
    assert bridge.missing_extras(parse_config("")) == []
