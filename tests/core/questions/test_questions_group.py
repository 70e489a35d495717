"""One cause, one card: ranges that hold for every operation, a list that is frozen, choices that say for how many."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.questions import made

from pollcore.card import Asked, GroupCard, card, digest, group, join, member
from pollcore.card.ranges import figures, merged, times
from pollcore.escalation import choices
from pollcore.escalation.situation import span_words, when
from pollcore.facts import DAY, MINUTE, SECOND, ChoiceKind, Instant, StopReason

R = StopReason
CAUSE = "origin_down:https://api.acme.test:443"


def one(n: int, reason: R = R.PROVIDER_FAILURE, **changes: object) -> Asked:
    fields: dict[str, object] = {"transport_failures_used": 3, "operation_id": f"op-{n:04d}"}
    op = made.stopped(reason, **{**fields, **changes})
    asked = made.question(reason, op, escalation_id=f"esc-{n:04d}", cause=CAUSE)
    return Asked(op, asked, made.POLICY, msgspec.structs.replace(made.EVERYTHING, changed_contract=None))


def of(items: list[Asked], **more: object) -> GroupCard:
    return join(CAUSE, [member(each, made.NOW) for each in items], made.NOW, **more)


def text_of(shown: GroupCard) -> str:
    rows = [str(line) for line in shown.lines]
    for choice in shown.choices:
        rows += [f"{choice.key} {choice.label} {choice.count}", *choice.details]
    return "\n".join(rows)


# --- ranges -----------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=20))
def test_a_range_of_figures_has_the_least_and_the_greatest(values: list[int]):
    text = figures(values)
    assert [int(x) for x in text.split(" to ")] == sorted({min(values), max(values)})


@given(st.lists(st.integers(0, 3 * DAY), min_size=1, max_size=20))
def test_a_range_of_times_has_the_first_and_the_last_also_over_midnight(offsets: list[int]):
    at = [Instant(made.NOW.wall - DAY + offset) for offset in offsets]
    text = times(at, made.NOW.wall)
    assert text.startswith(when(min(at), made.NOW.wall))
    assert text.endswith(when(max(at), made.NOW.wall))


@pytest.mark.rule("G4", "E10")
@given(
    st.lists(st.tuples(st.integers(0, 2 * DAY), st.integers(0, 3 * DAY), st.integers(0, 99)), min_size=1, max_size=12),
    st.text("abc /-:()", max_size=12),
)
def test_sentences_that_differ_in_figures_alone_are_one_with_the_true_ends(rows: list[tuple[int, int, int]], tail: str):
    wall = made.NOW.wall
    texts: dict[str, int] = {}
    for offset, span, number in rows:
        said = f"until {when(Instant(wall + offset), wall)}, {span_words(span)} old, request {number} of 100 {tail}"
        texts[said] = texts.get(said, 0) + 1
    found = merged(texts, wall)
    # a span has one or two units; each unit pair is a sentence of the same shape
    assert len(found) == 1
    text, count = found[0]
    assert count == len(rows)
    assert when(Instant(wall + min(r[0] for r in rows)), wall) in text
    assert when(Instant(wall + max(r[0] for r in rows)), wall) in text
    low, high = min(r[1] for r in rows), max(r[1] for r in rows)
    assert span_words(low) in text
    assert span_words(high) in text
    numbers = sorted({min(r[2] for r in rows), max(r[2] for r in rows)})
    assert f"request {' to '.join(map(str, numbers))} of 100" in text


@given(st.dictionaries(st.text(max_size=30), st.integers(1, 5), min_size=1, max_size=10))
def test_no_sentence_and_no_count_is_lost_in_merging(texts: dict[str, int]):
    found = merged(texts, made.NOW.wall)
    assert sum(count for _, count in found) == sum(texts.values())
    shapes = {re.sub(r"\d+", "", text) for text, _ in found}
    assert len(found) <= len(texts)
    assert shapes or not texts


# --- the card ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("E10", "E3", "E4")
def test_a_groups_card_says_what_happened_to_how_many_and_what_each_choice_costs_as_ranges():
    items = [one(n, deadline_at=Instant(made.DEADLINE + n * MINUTE)) for n in range(30)]
    items.append(one(30, extensions_used=3))
    shown = of(items)
    text = text_of(shown)
    assert "What happened: the provider's origin stopped answering: https://api.acme.test:443" in text
    assert "Operations: 31" in text
    assert "Stopped because: provider_failure" in text
    assert "Their waits end: 11:00:00 UTC to 11:29:00 UTC" in text
    assert "Transport failures: 3 of 3" in text
    extend = next(choice for choice in shown.choices if choice.kind is ChoiceKind.EXTEND)
    assert (extend.count, shown.count) == (30, 31)
    assert extend.details[0] == "deadline 11:00:00 UTC to 11:29:00 UTC -> 11:15:00 UTC to 11:44:00 UTC"
    assert "status requests 12 -> 16" in extend.details
    assert "transport failures 3 -> 4" in extend.details
    assert "for 30 of 31 operations; the other 1 is not touched" in extend.details
    assert any(row.startswith("cannot be chosen for 1: all 3 extensions") for row in extend.details)
    assert "op-0030: cannot extend 15 min / 4 checks, extend 60 min / 10 checks" in text
    assert "an answer covers these operations and no others" in text


@pytest.mark.rule("E10", "O5")
def test_what_sends_a_request_for_each_operation_is_shown_with_the_reason_and_cannot_be_chosen():
    shown = of([one(1), one(2)])
    cancel = next(choice for choice in shown.choices if choice.kind is ChoiceKind.CANCEL_AT_PROVIDER)
    assert cancel.count == 0
    assert cancel.operation_ids == ()
    assert "a request of its own" in (cancel.unavailable or "")


@pytest.mark.rule("E10", "G2")
def test_choices_that_would_do_different_things_under_one_label_are_two_choices():
    def changed(digest: str) -> Asked:
        base = one(1 if digest == "sha-a" else 2, R.UNKNOWN_STATE, last_known_state="compiling")
        other = msgspec.structs.replace(made.CHANGED, digest=digest, diff=f"-old\n+{digest}")
        return msgspec.structs.replace(
            base, circumstances=msgspec.structs.replace(made.EVERYTHING, changed_contract=other)
        )

    shown = of([changed("sha-a"), changed("sha-b")])
    adopt = [choice for choice in shown.choices if choice.kind is ChoiceKind.ADOPT_CONTRACT]
    assert [choice.count for choice in adopt] == [1, 1]
    text = text_of(shown)
    assert "Contract difference: +sha-a" in text
    assert "Contract difference: +sha-b" in text


@pytest.mark.rule("G4")
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_provider_character_starts_a_line_of_a_groups_card(state: str, account: str):
    hostile = f"run\x1b[2J\r\nOperations: 0\u202e{state}"
    items = [one(n, last_known_state=hostile, stop_explanation=hostile, last_fault=hostile) for n in range(3)]
    shown = join(f"origin_down:{hostile}{account}", [member(each, made.NOW) for each in items], made.NOW)
    assert all(str(line).isprintable() for line in shown.lines)
    assert all(detail.isprintable() for choice in shown.choices for detail in choice.details)
    assert sum(line.label == "Operations:" for line in shown.lines) == 1


@pytest.mark.rule("E10", "G4")
@given(
    st.lists(
        st.tuples(made.reasons, st.integers(0, 3), st.integers(0, 3), st.integers(-30, 90)), min_size=1, max_size=12
    )
)
def test_every_choice_covers_exactly_those_whose_own_card_offers_it(rows: list[tuple[R, int, int, int]]):
    items = [
        one(
            n,
            reason,
            extensions_used=extensions,
            holds_used=holds,
            deadline_at=Instant(made.DEADLINE + minutes * MINUTE),
        )
        for n, (reason, extensions, holds, minutes) in enumerate(rows)
    ]
    shown = of(items)
    assert shown.operation_ids == tuple(sorted(item.operation.operation_id for item in items))
    for item, frozen in zip(items, shown.members, strict=True):
        facts, op = item.circumstances, item.operation
        own = choices(op, item.question, policy=item.policy, now=made.NOW, circumstances=facts)
        if item.question.reason not in (R.CALL_APPROVAL, R.SESSION_APPROVAL):  # those name the request that waits
            assert frozen.digest == digest(card(op, item.question, own, now=made.NOW, circumstances=facts))
        can = {choice.label for choice in own if choice.unavailable is None}
        for choice in shown.choices:
            if choice.unavailable is None:
                assert (op.operation_id in choice.operation_ids) == (choice.label in can)
    assert len({choice.key for choice in shown.choices}) == len(shown.choices) <= 9
    assert [choice.kind for choice in shown.choices][-2:] == [ChoiceKind.INSPECT, ChoiceKind.CLOSE]
    for choice in shown.choices:
        assert choice.count == len(choice.operation_ids)
        for effect in choice.effects:
            assert effect.before
            assert effect.after


@pytest.mark.rule("E10", "G4")
@given(st.integers(0, 4), st.sampled_from(("version", "status_requests_used", "max_status_requests", "credential")))
def test_the_digest_of_the_list_holds_every_member_as_its_own_card_shows_it(at: int, field: str):
    items = [one(n) for n in range(5)]
    op = items[at].operation
    value = "other" if field == "credential" else getattr(op, field) + 1
    moved = msgspec.structs.replace(items[at], operation=msgspec.structs.replace(op, **{field: value}))
    assert of([*items[:at], moved, *items[at + 1 :]]).digest != of(items).digest
    assert of(items[::-1]).digest == of(items).digest
    assert of(items[:at] + items[at + 1 :]).digest != of(items).digest


@pytest.mark.rule("E10")
def test_nobody_stands_out_where_no_value_is_that_of_most():
    items = [one(n, last_known_state=f"state-{n % 5}") for n in range(20)]
    shown = of(items)
    assert shown.outliers_count == 0
    assert "Last states: state-0 (4), state-1 (4), state-2 (4), state-3 (4), 1 more" in text_of(shown)


@pytest.mark.rule("E10")
def test_a_list_that_holds_only_a_part_says_so():
    assert "Operations: 2 of 12,000 that wait" in text_of(of([one(1), one(2)], asked=12_000))


@pytest.mark.rule("E10")
def test_causes_are_ordered_by_who_ends_first():
    late = one(1, deadline_at=Instant(made.DEADLINE + 90 * MINUTE))
    other = msgspec.structs.replace(one(2), question=msgspec.structs.replace(one(2).question, cause="other"))
    assert [found.cause for found in group([late, other], now=made.NOW.after(SECOND))] == ["other", CAUSE]
