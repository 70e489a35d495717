"""Choices: the table of group E, what each choice costs and leads to, and when it vanishes or cannot be chosen."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.questions import made

from pollcore.escalation import PERMITTED, Circumstances, choices, permitted
from pollcore.facts import (
    MINUTE,
    Cancel,
    ChoiceKind,
    Confirm,
    ExtendSize,
    Instant,
    Policy,
    Status,
    StopDetail,
    StopReason,
    iso,
)

K = ChoiceKind
R = StopReason
TABLE = {
    "deadline_exceeded guidance_beyond_deadline request_budget_exhausted usefulness_ended": "extend cancel_at_provider",
    "extension_requested": "extend reject cancel_at_provider",
    "operator_request": "extend hold adopt_contract cancel_at_provider",
    "rate_limited provider_failure": "extend cancel_at_provider",
    "delivery_ambiguous": "extend cancel_at_provider resubmit",
    "unknown_state needs_human": "check_once hold adopt_contract cancel_at_provider",
    "authorization_denied": "use_other_credential check_once_with_rotated_credential",
    "credential_unavailable": "check_again use_other_credential",
    "integration_failure": "check_once hold adopt_contract accept_unvalidated_result cancel_at_provider",
    "job_failed job_cancelled job_expired": "resubmit",
    "approval_denied": "ask_again cancel_at_provider",
    "call_approval": "approve_once deny",
    "session_approval": "approve_session deny",
    "mode_change first_use": "approve reject",
}
EXPECTED = {R(reason): set(row.split()) for names, row in TABLE.items() for reason in names.split()}


def kinds(found) -> set[str]:
    return {choice.kind.value for choice in found}


@pytest.mark.rule("E2", "E1")
def test_every_reason_has_a_row_in_the_table_and_the_row_is_the_specs():
    assert set(EXPECTED) == set(StopReason)
    assert {reason: {kind.value for kind in row} for reason, row in PERMITTED.items()} == EXPECTED


@pytest.mark.rule("E2", "E9")
@pytest.mark.parametrize("reason", made.OF_AN_OPERATION)
def test_with_everything_possible_a_card_offers_its_whole_row_and_inspect_and_close_last(reason):
    found = list(made.offered(reason).values())
    assert kinds(found) == EXPECTED[reason] | {"inspect", "close"}
    assert [choice.kind for choice in found[-2:]] == [K.INSPECT, K.CLOSE]
    assert [choice.key for choice in found] == [str(digit) for digit in range(1, len(found) + 1)]
    assert [choice.kind for choice in found if not choice.decides] == [K.INSPECT]


@pytest.mark.rule("E2", "E4")
@given(st.data(), made.reasons, made.policies(), made.circumstances(), made.moments())
def test_whatever_the_record_the_choices_are_a_subset_of_the_row_and_none_says_continue(
    data, reason, policy, facts, now
):
    op = data.draw(made.records(reason))
    found = choices(op, made.question(reason, op), policy=policy, now=now, circumstances=facts)
    assert {choice.kind for choice in found} <= set(permitted(reason, op.status))
    assert {K.INSPECT, K.CLOSE} <= {choice.kind for choice in found}
    assert [choice.key for choice in found] == [str(digit) for digit in range(1, len(found) + 1)]
    assert len(found) <= 9
    assert not any("continue" in choice.label.lower() for choice in found)
    assert all(choice.leads_to for choice in found)


@pytest.mark.rule("E2")
@given(st.data(), made.reasons, made.policies(), made.circumstances(), made.moments())
def test_the_same_record_gives_the_same_choices(data, reason, policy, facts, now):
    op = data.draw(made.records(reason))
    asked = made.question(reason, op)
    one, two = (choices(op, asked, policy=policy, now=now, circumstances=facts) for _ in range(2))
    assert one == two


@pytest.mark.rule("E4", "E3")
def test_an_extension_is_labelled_by_its_size_and_shows_each_limit_before_and_after():
    found = made.offered(R.REQUEST_BUDGET_EXHAUSTED)["extend 15 min / 4 checks"]
    effects = {effect.what: (effect.before, effect.after) for effect in found.effects}
    assert effects["deadline"] == (made.DEADLINE, made.DEADLINE + 15 * MINUTE)
    assert effects["status_requests"] == (12, 16)
    assert effects["last_possible_check"][0] is None
    assert made.NOW.wall < effects["last_possible_check"][1] <= made.DEADLINE + 15 * MINUTE
    assert "55 minutes old" in found.leads_to
    assert found.grants


@pytest.mark.rule("E4")
def test_after_the_deadline_an_extension_counts_from_now():
    late = made.at("11:30:00")
    found = made.offered(R.DEADLINE_EXCEEDED, now=late)["extend 15 min / 4 checks"]
    deadline = next(effect for effect in found.effects if effect.what == "deadline")
    assert iso(Instant(deadline.after)) == "2026-03-02T11:45:00Z"


@pytest.mark.rule("E4")
def test_only_a_spent_failure_or_rate_budget_gets_the_number_that_the_size_names():
    op = made.stopped(R.PROVIDER_FAILURE, transport_failures_used=3, rate_limited_used=1)
    found = made.offered(R.PROVIDER_FAILURE, op)
    assert (found["extend 60 min / 10 checks"].transport_failures, found["extend 60 min / 10 checks"].rate_limited) == (
        2,
        0,
    )
    assert found["extend 15 min / 4 checks"].transport_failures == 1
    unspent = made.offered(R.DEADLINE_EXCEEDED, made.stopped(R.DEADLINE_EXCEEDED, transport_failures_used=2))
    assert unspent["extend 60 min / 10 checks"].transport_failures == 0


@pytest.mark.rule("E4")
def test_a_size_under_which_no_check_could_go_out_is_shown_with_the_reason_and_cannot_be_chosen():
    op = made.stopped(R.GUIDANCE_BEYOND_DEADLINE, guidance_until=Instant(made.DEADLINE + 30 * MINUTE))
    found = made.offered(R.GUIDANCE_BEYOND_DEADLINE, op)
    assert "11:30:00 UTC" in found["extend 15 min / 4 checks"].unavailable
    assert found["extend 60 min / 10 checks"].unavailable is None


@pytest.mark.rule("E4")
def test_used_up_extensions_are_shown_as_unavailable():
    op = made.stopped(R.DEADLINE_EXCEEDED, extensions_used=3)
    found = made.offered(R.DEADLINE_EXCEEDED, op)["extend 15 min / 4 checks"]
    assert "max_extensions" in found.unavailable


@pytest.mark.rule("E4", "T8")
@pytest.mark.parametrize("reason", [R.RATE_LIMITED, R.PROVIDER_FAILURE, R.DELIVERY_AMBIGUOUS])
def test_after_a_cool_down_an_extension_opens_and_not_before(reason):
    facts = msgspec.structs.replace(made.EVERYTHING, cooldown_until=Instant(made.NOW.wall + MINUTE))
    closed = made.offered(reason, facts=facts)["extend 15 min / 4 checks"]
    assert "10:59:00 UTC" in closed.unavailable
    later = made.at("10:59:00")
    assert made.offered(reason, facts=facts, now=later)["extend 15 min / 4 checks"].unavailable is None


@pytest.mark.rule("B5", "E3")
def test_an_extension_says_which_other_times_it_passes():
    op = made.stopped(
        R.USEFULNESS_ENDED,
        useful_until=Instant(made.DEADLINE - 5 * MINUTE),
        provider_expires_at=Instant(made.DEADLINE + MINUTE),
    )
    found = made.offered(R.USEFULNESS_ENDED, op)["extend 60 min / 10 checks"]
    said = " | ".join(found.warnings)
    assert "passes useful_until 10:55:00 UTC and moves it to 12:00:00 UTC" in said
    assert "provider's own expiry at 11:01:00 UTC" in said
    assert "retention" not in said
    beyond = msgspec.structs.replace(made.POLICY, retention=90 * MINUTE)
    assert "retention" in " ".join(
        made.offered(R.USEFULNESS_ENDED, op, policy=beyond)["extend 60 min / 10 checks"].warnings
    )


@pytest.mark.rule("E2", "E4")
def test_a_request_offers_exactly_the_size_asked_for():
    labels = made.offered(R.EXTENSION_REQUESTED)
    assert [label for label in labels if label.startswith("extend")] == ["extend 15 min / 4 checks"]


@pytest.mark.rule("B2")
def test_a_second_submission_offers_exactly_the_limits_asked_for_and_reject():
    op = made.operation(
        status=Status.ESCALATED,
        stop_reason=R.EXTENSION_REQUESTED,
        stop_detail=StopDetail.SECOND_SUBMISSION,
        status_requests_used=12,
        max_status_requests=12,
        submitted_at=Instant(made.DEADLINE - 40 * MINUTE),
    )
    asked = {"detail": "second_submission", "minutes": 0, "checks": 8, "asked_at": Instant(made.DEADLINE - 40 * MINUTE)}
    found = made.offered(R.EXTENSION_REQUESTED, op, **asked)
    granted = found["extend 40 min / 8 checks"]
    assert (granted.minutes, granted.checks) == (0, 8)
    assert {effect.what: effect.after for effect in granted.effects}["status_requests"] == 20
    assert "closed" in found["reject"].leads_to


@pytest.mark.rule("E5", "E8")
def test_a_cancel_is_there_only_with_a_documented_contract_and_tells_its_consequences():
    found = made.offered(R.DEADLINE_EXCEEDED)["cancel at provider"]
    said = " | ".join(found.warnings)
    assert "partial output is deleted" in said
    assert "irreversible" in said
    assert "best effort" in said
    assert (found.minutes, found.checks) == (5, 2)
    assert "does not mean that the job is cancelled" in found.leads_to
    without = msgspec.structs.replace(made.POLICY, cancel=None)
    assert "cancel at provider" not in made.offered(R.DEADLINE_EXCEEDED, policy=without)


@pytest.mark.rule("E8")
def test_a_cancel_that_does_nothing_in_this_state_says_so():
    cancel = Cancel("stops", Confirm(5, 2), allowed_states=("queued",))
    policy = msgspec.structs.replace(made.POLICY, cancel=cancel)
    found = made.offered(R.DEADLINE_EXCEEDED, policy=policy)["cancel at provider"]
    assert "does nothing unless the job is in: queued" in found.warnings
    assert found.unavailable


@pytest.mark.rule("E5", "E8")
@pytest.mark.parametrize("irreversible", [True, False])
def test_a_cancel_for_named_states_is_not_granted_blind_where_it_deletes_a_result(irreversible):
    cancel = Cancel("stops", Confirm(5, 2), irreversible=irreversible, allowed_states=("queued",))
    policy = msgspec.structs.replace(made.POLICY, cancel=cancel)
    unseen = made.operation(last_known_state=None)
    found = made.offered(R.INTEGRATION_FAILURE, op=unseen, policy=policy)["cancel at provider"]
    told = [line for line in (*found.warnings, found.unavailable or "") if "the last state is not known" in line]
    assert len(told) == 1
    assert (found.unavailable is not None) is irreversible
    seen = made.operation(last_known_state="queued")
    known = made.offered(R.INTEGRATION_FAILURE, op=seen, policy=policy)["cancel at provider"]
    assert known.unavailable is None
    assert not any("not known" in line for line in known.warnings)


@pytest.mark.rule("E6")
@pytest.mark.parametrize("missing", ["resubmit_possible", "fingerprint_matches"])
def test_resubmit_is_there_only_with_key_template_and_matching_fingerprint(missing):
    assert "resubmit" in made.offered(R.JOB_FAILED)
    facts = msgspec.structs.replace(made.EVERYTHING, **{missing: False})
    assert "resubmit" not in made.offered(R.JOB_FAILED, facts=facts)


@pytest.mark.rule("E6", "S7")
def test_resubmit_names_the_key_and_the_new_limits_and_is_absent_without_a_stored_fingerprint():
    found = made.offered(R.DELIVERY_AMBIGUOUS)["resubmit"]
    assert "the same idempotency key" in found.leads_to
    assert "deadline 40 minutes, 12 requests" in found.leads_to
    assert "a new idempotency key" in made.offered(R.JOB_FAILED)["resubmit"].leads_to
    op = made.stopped(R.JOB_FAILED)
    bare = msgspec.structs.replace(op, submitted=msgspec.structs.replace(op.submitted, request_fingerprint=None))
    assert "resubmit" not in made.offered(R.JOB_FAILED, bare)


@pytest.mark.rule("E7")
def test_when_the_deadline_passes_under_an_open_card_a_check_carries_an_extension_or_vanishes():
    assert made.offered(R.UNKNOWN_STATE)["check once"].minutes == 0
    late = made.at("11:05:00")
    carried = made.offered(R.UNKNOWN_STATE, now=late)
    assert "check once" not in carried
    assert (
        carried["check once, with 15 min / 4 checks"].minutes,
        carried["check once, with 15 min / 4 checks"].checks,
    ) == (15, 4)
    assert not any(choice.kind is K.HOLD for choice in carried.values())
    used_up = made.stopped(R.UNKNOWN_STATE, extensions_used=3)
    assert not any(choice.kind is K.CHECK_ONCE for choice in made.offered(R.UNKNOWN_STATE, used_up, now=late).values())


@pytest.mark.rule("E7", "T9")
def test_a_wall_clock_set_back_does_not_bring_time_back_to_a_card():
    late = made.at("11:05:00")
    back = msgspec.structs.replace(late, wall=Instant(made.START + MINUTE))
    assert "check once" not in made.offered(R.UNKNOWN_STATE, now=back)


@pytest.mark.rule("H3", "E2")
def test_a_refused_credential_is_never_offered_again_unless_its_secret_has_changed():
    facts = msgspec.structs.replace(made.EVERYTHING, secret_rotated=False, other_credentials=("acme-key", "second"))
    found = made.offered(R.AUTHORIZATION_DENIED, facts=facts)
    assert [choice.credential for choice in found.values() if choice.grants] == ["second"]


@pytest.mark.rule("T5", "T8", "E4")
def test_a_cool_down_of_others_holds_back_the_first_check_and_an_extension_that_ends_before_it_is_no_choice():
    early = made.at("10:30:00")
    cooled = msgspec.structs.replace(made.EVERYTHING, cooldown_until=made.at("10:45:00").wall)
    shown = made.offered(R.UNKNOWN_STATE, now=early, facts=cooled)["check once"]
    assert "the first check goes out at 10:45:00" in shown.leads_to
    long = msgspec.structs.replace(made.EVERYTHING, cooldown_until=made.at("11:30:00").wall)
    offered = made.offered(R.UNKNOWN_STATE, now=early, facts=long)
    assert "check once" not in offered
    assert "check once, with 60 min / 10 checks" in offered


@pytest.mark.rule("S8", "E2")
def test_adopting_is_offered_only_when_the_file_has_changed_and_knows_the_state():
    assert "adopt the changed contract" in made.offered(R.UNKNOWN_STATE)
    ignorant = msgspec.structs.replace(made.CHANGED, knows_state=False)
    facts = msgspec.structs.replace(made.EVERYTHING, changed_contract=ignorant)
    assert "adopt the changed contract" not in made.offered(R.UNKNOWN_STATE, facts=facts)
    assert "adopt the changed contract" in made.offered(R.INTEGRATION_FAILURE, facts=facts)
    same = msgspec.structs.replace(made.CHANGED, digest="sha-old")
    facts = msgspec.structs.replace(made.EVERYTHING, changed_contract=same)
    assert "adopt the changed contract" not in made.offered(R.INTEGRATION_FAILURE, facts=facts)


@pytest.mark.rule("E2")
def test_the_keyring_choice_opens_once_the_keyring_reads():
    facts = msgspec.structs.replace(made.EVERYTHING, keyring_reads=False, keyring_problem="the keyring is locked")
    assert "locked" in made.offered(R.CREDENTIAL_UNAVAILABLE, facts=facts)["read the keyring again"].unavailable
    assert made.offered(R.CREDENTIAL_UNAVAILABLE)["read the keyring again"].unavailable is None


@pytest.mark.rule("E2")
def test_an_unvalidated_result_is_offered_only_when_there_is_one_and_says_what_failed():
    found = made.offered(R.INTEGRATION_FAILURE)["accept the unvalidated result"]
    assert "succeeded_without_result" in found.warnings[0]
    facts = msgspec.structs.replace(made.EVERYTHING, unvalidated_result=False)
    assert "accept the unvalidated result" not in made.offered(R.INTEGRATION_FAILURE, facts=facts)


@pytest.mark.rule("E8", "E9")
def test_close_says_that_the_job_may_go_on_and_inspect_that_it_sends_nothing():
    found = made.offered(R.DEADLINE_EXCEEDED)
    assert "may go on" in found["close"].leads_to
    assert "sends nothing" in found["inspect"].leads_to
    assert "https://console.acme.test" in found["inspect"].leads_to
    assert "stays failed" in made.offered(R.JOB_FAILED)["close"].leads_to


@pytest.mark.rule("E2")
def test_while_held_the_operators_question_offers_close_cancel_and_end_hold():
    op = made.operation(status=Status.HELD, hold_until=Instant(made.NOW.wall + MINUTE))
    found = made.offered(R.OPERATOR_REQUEST, op)
    assert kinds(found.values()) == {"end_hold", "cancel_at_provider", "inspect", "close"}


@pytest.mark.rule("G6")
def test_a_mode_change_belongs_to_a_credential_and_needs_no_operation():
    asked = made.question(R.MODE_CHANGE, None)
    found = choices(None, asked, policy=Policy(), now=made.NOW, circumstances=made.EVERYTHING)
    assert [choice.label for choice in found] == ["approve standing", "reject", "inspect", "close"]
    with pytest.raises(ValueError, match="belongs to an operation"):
        choices(None, R.DEADLINE_EXCEEDED, policy=Policy(), now=made.NOW)


@pytest.mark.rule("G2")
def test_without_gathered_facts_nothing_that_needs_them_is_offered():
    found = made.offered(R.INTEGRATION_FAILURE, facts=Circumstances())
    assert kinds(found.values()) == {"check_once", "hold", "cancel_at_provider", "inspect", "close"}


@pytest.mark.rule("E4")
@given(st.integers(1, 500), st.integers(1, 500))
def test_a_sizes_label_is_exactly_the_specs(minutes, checks):
    policy = msgspec.structs.replace(made.POLICY, extend=(ExtendSize(minutes, checks),))
    assert f"extend {minutes} min / {checks} checks" in made.offered(R.DEADLINE_EXCEEDED, policy=policy)
