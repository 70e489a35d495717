"""What people and programs are told: warnings, cards, stories, units and names, each once and in words."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.console.cli.conftest import NOW, FakeCore, Outcome, make_operation, make_question

from pollconsole import words
from pollconsole.cli import present, takeover
from pollconsole.cli.doctor import Finding
from pollcore.decide.remarks import remarks
from pollcore.facts import AuditEvent, EventName, Fault, HttpFact, Instant, Observation, Status, Verdict
from pollcore.story import line, story

Call = Callable[..., Outcome]


# --- submit -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("B2")
def test_a_second_submission_says_that_nothing_is_sent_until_it_is_granted(real_home: Path, call: Call) -> None:
    submit = ("submit", "--home", str(real_home), "--provider", "lab", "--job-id", "j")
    first = call(*submit, "--json").json
    assert first["warnings"] == []
    call("close", "--home", str(real_home), first["operation_id"], "--because", "x")
    done = call(*submit, "--id", "op-again", "--json")
    assert (done.code, done.json["stop_detail"]) == (0, "second_submission")
    (warning,) = done.json["warnings"]
    assert "nothing is sent for it until an operator grants it" in warning
    assert f"warning: {warning}" in done.err
    again = call(*submit, "--id", "op-again")
    assert f"warning: {warning}" in again.err
    assert "existed already" in again.err


@pytest.mark.rule("B1")
def test_the_numbers_of_an_excess_carry_their_unit(real_home: Path, call: Call) -> None:
    submit = ("submit", "--home", str(real_home), "--provider", "lab", "--job-id", "j", "--json")
    late = call(*submit, "--deadline", "9h").json["error"]
    assert (late["limit"], late["asked_ms"], late["allowed_ms"]) == ("deadline", 32_400_000, 28_800_000)
    absurd = call(*submit, "--deadline", "400d").json["error"]
    assert absurd["asked_ms"] == 400 * 86_400_000
    many = call(*submit, "--max-requests", "201").json["error"]
    assert (many["asked"], many["allowed"]) == (201, 200)
    for error in (late, absurd):
        assert not {"asked", "allowed"} & set(error)


# --- show -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("E3")
def test_an_open_question_is_shown_by_the_lines_of_its_card(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation(status=Status.ESCALATED, last_known_state="running")
    core.store.open = [make_question()]
    shown = call("show", "op-1").out
    assert "\nExternal job needs a decision\n[1] extend\n" in shown
    assert shown.count("Last state:") == 1
    for dumped in ("leads to:", "transport failures:", "grants:", "contract digest:", "Escalation:"):
        assert dumped not in shown


def test_lines_of_a_card_that_are_told_already_are_left_out_and_choices_never() -> None:
    view = {"operation_id": "op-1", "provider": "acme", "status": "escalated", "account": "a"}
    card = ["Title", "Operation: op-1", "Explanation: why", "Provider and account: acme", "[1] Status: x", "Status: y"]
    text = present.operation(view, card)
    assert text.endswith("\n\nTitle\nExplanation: why\n[1] Status: x\nStatus: y")


@pytest.mark.rule("B5")
def test_spans_are_words_for_people_and_named_milliseconds_for_programs(real_home: Path, call: Call) -> None:
    text = call("provider", "show", "lab", "--home", str(real_home)).out
    assert re.search(r"^retention: 1 d$", text, re.MULTILINE)
    assert "\n  deadline: 40 min\n" in text
    found = call("provider", "show", "lab", "--home", str(real_home), "--json").json
    assert (found["limits_default"]["deadline_ms"], found["retention_ms"]) == (2_400_000, 86_400_000)


@pytest.mark.slow
@pytest.mark.rule("S7")
def test_a_contract_is_shown_with_the_digest_of_cards_and_with_that_of_its_text(
    real_home: Path, call: Call, tmp_path: Path
) -> None:
    made = call("submit", "--provider", "lab", "--job-id", "j", "--home", str(real_home), "--json").json
    found = call("provider", "show", "lab", "--home", str(real_home), "--json").json
    assert found["digest"] == made["contract_digest"]
    assert found["text_digest"] != found["digest"]  # the instance sets a base URL
    file = tmp_path / "text.toml"
    file.write_text(found["text"], "utf-8")
    assert call("provider", "check", str(file), "--json").json["text_digest"] == found["text_digest"]
    shown = call("provider", "show", "lab", "--home", str(real_home)).out
    assert f"operations and cards (text and settings): {found['digest']}\n" in shown
    assert f"text alone: {found['text_digest']}\n" in shown


@pytest.mark.rule("K2")
def test_a_credential_of_the_settings_that_nobody_stored_is_warned_about_when_a_wait_is_handed_over(
    real_home: Path, call: Call
) -> None:
    config = real_home / "config.toml"
    config.write_text(config.read_text().replace("[audit]", 'credential = "lab-token"\n[audit]'))
    made = call("submit", "--provider", "lab", "--job-id", "j", "--id", "op-j", "--home", str(real_home), "--json")
    (warning,) = made.json["warnings"]
    # which of the two depends on the machine that the test runs on
    assert re.search('lab-token": no (credential of that name is stored|usable keyring on this machine)', warning)
    assert f"warning: {warning}" in made.err
    again = call("submit", "--provider", "lab", "--job-id", "j", "--id", "op-j", "--home", str(real_home), "--json")
    assert again.json["existed"]
    assert again.json["warnings"] == []


@pytest.mark.rule("O8")
def test_the_hand_over_adds_up_and_says_how_long_no_core_ran() -> None:
    row = {"operation_id": "op-1", "label": None, "provider": "acme", "hold_until": "t"}
    view = {
        "at": "t", "since": "t", "core": {"runs": False, "silent_ms": 840_000, "running": []}, "operations": {},
        "open_cards_count": 0, "ends_soon_count": 0, "held_count": 1_500, "decided_more": 0, "open_cards": [],
        "ends_soon": [], "held": [row] * 200, "paused": [], "sessions": [], "decided": [],
        "audit": {"begun": False, "alarm": None, "why": None},
    }  # fmt: skip
    lines = list(takeover.page(view))
    assert "core: none runs, last 14 minutes ago: nothing is polled" in lines
    assert "held (1,500):" in lines
    assert lines.count("  op-1, acme: until t") == 50
    assert "  and 1,450 more (--json has 200)" in lines
    ended = list(takeover.page({**view, "core": {"runs": False, "silent_ms": 60_001, "running": []}}))
    assert "core: none runs: nothing is polled" in ended


# --- wait -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("E7")
def test_a_wait_that_times_out_tells_of_an_open_question(core: FakeCore, call: Call) -> None:
    core.store.beat()
    core.store.rows["op-1"] = make_operation()
    assert "question" not in call("wait", "op-1", "--timeout", "1s").err
    core.store.open = [make_question()]
    done = call("wait", "op-1", "--timeout", "1s")
    assert done.code == 13
    assert "a question is open (request_budget_exhausted); the wait goes on" in done.err


# --- result, callers --------------------------------------------------------------------------------------------------


@pytest.mark.rule("K4")
def test_a_result_says_whether_it_is_masked(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    assert call("result", "op-1", "--json").json["masked"] is True
    assert call("result", "op-1", "--reveal", "--json").json["masked"] is False


@pytest.mark.rule("K4")
def test_people_are_told_what_masked_means_where_there_is_a_link() -> None:
    link = {"fields": {"url": "https://x.example/out?..."}, "permits": "fetch_result", "masked": True}
    told = present.result(link)
    assert "masked" not in told
    assert "links: without their query; 'pollconsole result OP --reveal' shows them whole, and is recorded" in told
    whole = {"fields": {"url": "https://x.example/out?sig=1"}, "permits": "fetch_result", "masked": False}
    assert "links: whole; this look at them is recorded" in present.result(whole)
    assert "links" not in present.result({"fields": {"rows": 3}, "permits": "fetch_result", "masked": True})


@pytest.mark.rule("G6", "A1")
@pytest.mark.parametrize(
    "argv",
    [
        *((kind, "op-1", "--because", "x") for kind in ("close", "hold", "reject", "deny")),
        ("request-extension", "op-1", "--minutes", "15", "--checks", "4", "--because", "x"),
        ("pause", "--provider", "acme", "--until", "1h"),
        ("result", "op-1", "--reveal"),
        ("fetch", "op-1", "--to", "TARGET"),
    ],
    ids=lambda argv: argv[0],
)
def test_a_caller_is_recorded_after_the_os_user_and_never_instead(
    argv: tuple[str, ...], core: FakeCore, call: Call, tmp_path: Path
) -> None:
    core.store.rows["op-1"] = make_operation()
    words = [str(tmp_path / "r") if word == "TARGET" else word for word in argv]
    assert call(*words, "--caller", "root@other (pts/9)").code == 0
    assert call(*words).code == 0
    by = core.actions.calls[0][-1]
    assert by == "ann@desk (pts/1), caller root@other (pts/9)"


@pytest.mark.rule("G6")
def test_the_record_of_a_real_store_names_both(real_home: Path, call: Call) -> None:
    home = ("--home", str(real_home))
    call("submit", *home, "--provider", "lab", "--job-id", "j", "--id", "op-1")
    ask = ("request-extension", "op-1", *home, "--minutes", "15", "--checks", "4", "--because", "x", "--caller", "bot")
    assert call(*ask).code == 0
    assert call("show", "op-1", *home, "--json").json["escalation"]["asked_by"].endswith(", caller bot")
    call("reject", "op-1", *home, "--because", "y", "--caller", "bot 2")
    (event,) = [
        e for e in call("audit", "show", "op-1", *home, "--json").json["events"] if e["event"] == "rejected"
    ]  # fmt: skip
    assert re.fullmatch(r"\S+@.+, caller bot 2", event["operator"])


# --- the story --------------------------------------------------------------------------------------------------------


def event(name: EventName, **fields: object) -> AuditEvent:
    return AuditEvent(at=NOW.wall, event=name, operation_id="op-1", **fields)  # type: ignore[arg-type]


@pytest.mark.rule("A2")
def test_both_stories_leave_out_what_was_about_to_be_sent_and_json_keeps_it(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    core.store.told = [event(EventName.SENT, requests_used=1), event(EventName.POLLED, state="running")]
    assert call("audit", "show", "op-1").out == "10:00:00 polled, state running\n"
    assert call("audit", "show").out == "10:00:00 op-1 polled, state running\n"
    for argv in (["op-1"], []):
        told = call("audit", "show", *argv, "--json").json["events"]
        assert [one["event"] for one in told] == ["sent", "polled"]


@pytest.mark.rule("A2")
def test_an_event_of_no_operation_is_named_so_in_the_story_of_all() -> None:
    paused = AuditEvent(at=NOW.wall, event=EventName.PAUSED, text="acme")
    assert list(story([paused], named=True)) == ["10:00:00 - paused acme"]


@pytest.mark.rule("A2")
def test_a_success_is_told_once_where_the_provider_has_the_same_word_for_it() -> None:
    polled = event(EventName.POLLED, decision="succeed", state="succeeded", detail="partial")
    assert line(polled) == "10:00:00 polled, state succeeded, partial"
    polled = event(EventName.POLLED, decision="succeed", state="complete")
    assert line(polled) == "10:00:00 polled, state complete, succeeded"
    stopped = event(EventName.POLLED, decision="stop", state="succeeded", reason="integration_failure")
    assert line(stopped) == "10:00:00 polled, state succeeded, integration failure, ended"


@pytest.mark.rule("A2")
def test_a_remark_within_another_is_told_once() -> None:
    polled = event(EventName.POLLED, state="x", text="never seen", notes=("never seen", "a 403, never seen", "late"))
    assert line(polled) == "10:00:00 polled, state x (a 403, never seen; late)"
    polled = event(EventName.POLLED, state="x", text="a 403, never seen", notes=("late", "never seen"))
    assert line(polled) == "10:00:00 polled, state x (a 403, never seen; late)"


@pytest.mark.rule("H3")
@pytest.mark.parametrize("notes", [(), ("submit was accepted, the job was never seen with this credential",)])
def test_a_refused_credential_of_an_unseen_job_has_one_remark_on_it(notes: tuple[str, ...]) -> None:
    http = HttpFact(403, Instant(NOW.wall), Instant(NOW.wall), None)
    seen: Observation | Fault = Observation(verdict=Verdict.DENIED, http=http, notes=notes)
    assert sum("submit was accepted" in one for one in remarks(make_operation(), seen, NOW, ())) == 1


# --- submit, the same again -------------------------------------------------------------------------------------------


@pytest.mark.rule("S7", "B1")
def test_the_same_id_with_other_limits_is_told_with_what_differs(real_home: Path, call: Call) -> None:
    submit = ("submit", "--home", str(real_home), "--provider", "lab", "--job-id", "j", "--id", "op-s")
    assert call(*submit, "--deadline", "30m").code == 0
    again = call(*submit, "--deadline", "30m", "--json").json
    assert (again["existed"], again["warnings"]) == (True, [])
    other = call(*submit, "--max-requests", "7", "--deadline", "20m", "--json")
    assert (other.code, other.json["existed"], other.json["max_status_requests"]) == (0, True, 25)
    (warning,) = other.json["warnings"]
    assert "max_status_requests 7 was asked for, 25 holds" in warning
    assert "deadline 20" in warning
    assert f"warning: {warning}" in other.err


def test_a_contract_without_its_server_is_refused_with_the_table_to_add(real_home: Path, call: Call) -> None:
    done = call("submit", "--home", str(real_home), "--provider", "example-jobs", "--job-id", "j", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "base_url")
    assert "the base_url is missing" in done.err
    assert '[providers.NAME] with contract = "example-jobs" and base_url = ' in done.err


def test_the_version_is_a_document_where_json_is_asked_for(call: Call) -> None:
    for argv in (("--version", "--json"), ("--json", "--version")):
        assert set(call(*argv).json) == {"version"}
    assert call("--version").out.startswith("pollconsole ")


def test_zero_is_a_span_where_it_may_be_none(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation(status=Status.SUCCEEDED)
    assert call("wait", "op-1", "--timeout", "0").code == 0


def test_doctor_sends_nobody_to_doctor() -> None:
    from pollcore.adapters.keyring_store import _WAY_OUT

    for text in (
        *_WAY_OUT.values(),
        "x: run `pollconsole doctor`",
        "our fault; run `pollconsole doctor` and report it",
    ):
        assert "pollconsole doctor" not in Finding("store", "wrong", text).text


def test_texts_of_contracts_are_one_line_without_rule_ids() -> None:
    told = words.sentence("a.toml:3: state: no evidence (S7)\nbody.[\n     ^\nmore (X7, B2)")
    assert told == "a.toml:3: state: no evidence body.[ more"
    assert words.sentence("HTTP (2) stays (S), (AB7)") == "HTTP (2) stays (S), (AB7)"


def test_a_contract_that_is_too_large_for_the_home_is_too_large_to_be_checked(tmp_path: Path, call: Call) -> None:
    from pollcore.contract.document import MAX_BYTES

    file = tmp_path / "large.toml"
    file.write_text("#" * (MAX_BYTES + 1))
    done = call("provider", "check", str(file))
    assert (done.code, f"more than {MAX_BYTES} bytes" in done.err) == (2, True)
