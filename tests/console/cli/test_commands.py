"""What each command does with a core: calls, documents, words, exit codes; hostile texts never reach an output raw."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.console.cli.conftest import (
    CANARY,
    NOW,
    FakeCore,
    Outcome,
    hostile_events,
    hostile_operation,
    make_operation,
    make_question,
)

from pollconsole.cli import plain
from pollcore.facts import ActionOutcome, ChoiceKind, Instant, Status

Call = Callable[..., Outcome]

_SHOW = """
operation_id provider account provider_job_id label status last_known_state last_http started_at deadline_at
useful_until provider_expires_at max_status_requests status_requests_used max_transport_failures
transport_failures_used max_rate_limited rate_limited_used completed_polls request_fingerprint expected_states
caller next_poll_at delay_source stop_reason stop_detail result escalation approval extensions contract_digest
credential
"""
_EVENT = """
at event state_before state http planned_at delay_source next_poll_at requests_used max_requests deadline_at
decision reason detail operator caller
"""
SHOW_FIELDS = frozenset(_SHOW.split())
EVENT_FIELDS = frozenset(_EVENT.split())


def test_show_json_has_every_promised_field(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    shown = call("show", "op-1", "--json").json
    assert SHOW_FIELDS - set(shown) == set()
    assert shown["deadline_at"] == "2026-03-02T10:30:00Z"


@pytest.mark.rule("G5")
def test_anyone_is_told_of_an_open_question_with_its_choices(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation(status=Status.ESCALATED)
    core.store.open = [make_question()]
    shown = call("show", "op-1", "--json").json["escalation"]
    listed = call("escalations", "--json").json["escalations"]
    assert shown["choices"][0]["label"] == "extend 15 min / 4 checks"
    assert [(q["reason"], q["operation_id"]) for q in listed] == [("request_budget_exhausted", "op-1")]
    assert call("escalations").out.startswith("External job needs a decision\n")


@pytest.mark.rule("E10", "V4")
def test_questions_are_listed_by_what_ends_soonest_as_the_console_lists_them(core: FakeCore, call: Call) -> None:
    for name, minutes in (("op-1", 50), ("op-2", 5)):
        left = Instant(core.clock.now().wall + minutes * 60_000)
        core.store.rows[name] = make_operation(name, status=Status.ESCALATED, deadline_at=left)
    older = Instant(core.clock.now().wall - 3_600_000)
    core.store.open = [
        make_question("op-1", escalation_id="esc-1", cause="a", asked_at=older),
        make_question("op-2", escalation_id="esc-2", cause="b"),
    ]
    listed = call("escalations", "--json").json["escalations"]
    assert [one["operation_id"] for one in listed] == ["op-2", "op-1"]


def test_an_unknown_operation_is_refused_with_near_names(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1f2e3d4c"] = make_operation("op-1f2e3d4c")
    for command in (["show"], ["wait"], ["audit", "show"], ["result"], ["close", "--because", "x"]):
        done = call(*command, "op-1f2e3d4d", "--json")
        assert done.code == 2
        assert done.json["error"]["code"] == "not_found"
        assert "did you mean op-1f2e3d4c" in done.err


def test_list_filters_and_says_when_it_was_cut(core: FakeCore, call: Call) -> None:
    core.store.beat()
    core.store.rows = {
        "op-1": make_operation("op-1"),
        "op-2": make_operation("op-2", Status.ESCALATED),
        "op-3": make_operation("op-3", submitted_at=Instant(NOW.wall - 999_000_000)),
    }
    ids = lambda *argv: [o["operation_id"] for o in call("list", "--json", *argv).json["operations"]]  # noqa: E731
    assert ids() == ["op-1", "op-2", "op-3"]
    assert ids("--status", "escalated") == ["op-2"]
    assert ids("--since", "1d") == ["op-1", "op-2"]
    assert ids("--provider", "none") == []
    assert "no provider 'acne'; did you mean acme?" in call("list", "--provider", "acne").err
    assert "no provider" not in call("list", "--provider", "lab").err
    assert call("list").err == ""


@pytest.mark.rule("V1")
def test_a_list_says_whether_it_is_all(core: FakeCore, call: Call) -> None:
    core.store.beat()
    core.store.rows = {f"op-{n}": make_operation(f"op-{n}") for n in range(3)}
    for limit, more in ((2, True), (3, False), (4, False)):
        found = call("list", "--limit", str(limit), "--json")
        assert (len(found.json["operations"]), found.json["more"]) == (min(limit, 3), more)
        assert ("there are more than these 2" in found.err) is more
    assert call("list", "--limit", "99999", "--json").json["more"] is False
    refused = call("list", "--limit", "100000", "--json")
    assert refused.code == 2
    assert refused.json["error"]["allowed"] == 99_999


@pytest.mark.rule("V1")
def test_the_lines_count_all_that_is_live_also_where_rows_are_left_out(
    core: FakeCore, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    core.store.rows = {f"op-{n}": make_operation(f"op-{n}") for n in range(5)}
    core.store.rows["op-9"] = make_operation("op-9", Status.SUCCEEDED)
    monkeypatch.setattr(plain, "MAX_ROWS", 3)
    lines = call("--plain", "--once").out.splitlines()
    assert lines[0] == "5 live operations:"
    assert sum(line.startswith("op-") for line in lines) == 3
    assert "and 2 more that changed earlier: 'pollconsole list --limit N'" in lines


@pytest.mark.rule("O8")
@pytest.mark.parametrize(
    "argv", [("list",), ("submit", "--provider", "acme", "--job-id", "j"), ("wait", "op-1", "--timeout", "0s")]
)
def test_submit_wait_and_list_say_when_no_core_runs(argv: tuple[str, ...], core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    assert "no core has run on this home yet" in call(*argv).err
    core.store.beat(age_ms=180_000)
    assert "no core has run for 3 minutes" in call(*argv).err
    core.store.beat(kind="cli")
    assert "no core" in call(*argv).err
    core.store.beat()
    assert "no core" not in call(*argv).err


def test_submit_hands_over_every_field_under_its_own_name(core: FakeCore, call: Call) -> None:
    core.actions.warnings = ("backoff spends the budget in its first tenth",)
    done = call(
        "submit", "--provider", "acme", "--job-id", "job-7", "--param", "region=eu", "--status-url", "https://a.example/7",
        "--deadline", "40m", "--max-requests", "12", "--max-transport-failures", "3", "--max-rate-limited", "4",
        "--useful-until", "2026-03-02T12:00:00Z", "--id", "op-mine", "--label", "x", "--request-fingerprint", "ab",
        "--idempotency-key", "k", "--credential", "c", "--account", "t", "--started-at", "2026-03-02T09:00:00Z",
        "--caller", "agent", "--json",
    )  # fmt: skip
    assert done.code == 0
    assert done.json["operation_id"] == "op-mine"
    assert done.json["warnings"] == ["backoff spends the budget in its first tenth"]
    assert "warning: backoff" in done.err
    spec = core.actions.calls[0][1]
    assert (spec.deadline_ms, spec.deadline_at, spec.max_status_requests) == (2_400_000, None, 12)
    assert (spec.params, spec.started_at, spec.caller) == ({"region": "eu"}, NOW.wall - 3_600_000, "agent")


def test_a_file_and_the_flags_make_the_same_submission(
    core: FakeCore, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b'{"provider": "acme", "job_id": "j", "param": {"n": 3}, "deadline": "2026-03-02T11:00:00Z", "id": "op-x"}'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert call("submit", "--file", "-", "--label", "l").code == 0
    spec = core.actions.calls[0][1]
    assert (spec.params, spec.deadline_at, spec.deadline_ms, spec.label) == ({"n": 3}, NOW.wall + 3_600_000, None, "l")


@pytest.mark.rule("H1")
def test_a_saved_response_goes_to_the_core_whole(core: FakeCore, call: Call, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.write_bytes(b'HTTP/2 202 \r\nlocation: /jobs/7\r\n\r\n{"id": "job-7"}')
    assert (
        call("submit", "--provider", "acme", "--from-response", str(saved), "--response-url", "https://a.example/").code
        == 0
    )
    spec = core.actions.calls[0][1]
    assert (spec.response.status, spec.response.header("location"), spec.job_id) == (202, "/jobs/7", None)
    assert spec.response.answered_at > NOW.wall
    assert spec.response_url == "https://a.example/"


@pytest.mark.parametrize(
    ("status", "code"),
    [(Status.SUCCEEDED, 0), (Status.ESCALATED, 10), (Status.FAILED, 11), (Status.EXPIRED, 12), (Status.CLOSED, 14)],
)
def test_wait_ends_with_the_code_of_the_status(status: Status, code: int, core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation(status=status)
    done = call("wait", "op-1", "--json")
    assert (done.code, done.json["status"], core.store.waits) == (code, status.value, 0)


def test_wait_sees_the_end_when_the_record_changes(core: FakeCore, call: Call) -> None:
    core.store.beat()
    core.store.rows["op-1"] = make_operation()

    def end(looks: int) -> None:
        if looks == 3:
            core.store.rows["op-1"] = make_operation(status=Status.SUCCEEDED)

    core.store.on_wait = end
    assert call("wait", "op-1").code == 0
    assert core.store.waits == 3


@pytest.mark.rule("O8")
def test_wait_tells_a_slow_job_from_a_missing_core(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    core.store.beat()
    assert call("wait", "op-1", "--timeout", "5s").code == 13
    core.store.beats = []
    done = call("wait", "op-1")
    assert done.code == 15
    assert "pollconsole run" in done.err


@pytest.mark.rule("G5")
@pytest.mark.parametrize("kind", [ChoiceKind.CLOSE, ChoiceKind.HOLD, ChoiceKind.REJECT, ChoiceKind.DENY])
def test_lowering_asks_the_core_for_exactly_that(kind: ChoiceKind, core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    assert call(kind.value, "op-1", "--because", "not needed").code == 0
    assert core.actions.calls == [("lower", "op-1", kind, "not needed", "ann@desk (pts/1)")]


def test_pause_counts_a_span_from_now_and_refuses_the_past(core: FakeCore, call: Call) -> None:
    assert call("pause", "--provider", "acme", "--account", "a", "--until", "40m").code == 0
    _, provider, account, until, _ = core.actions.calls[0]
    assert (provider, account) == ("acme", "a")
    assert 0 <= until - NOW.wall - 2_400_000 < 1_000
    assert call("pause", "--provider", "acme", "--until", "2026-03-02T09:00:00Z").code == 2
    assert call("pause", "--provider", "acme", "--until", "400d").code == 2
    assert len(core.actions.calls) == 1


@pytest.mark.rule("G5")
def test_an_extension_is_only_asked_for(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    done = call("request-extension", "op-1", "--minutes", "15", "--checks", "4", "--because", "large")
    assert core.actions.calls == [("request_extension", "op-1", 15, 4, "large", "ann@desk (pts/1)")]
    assert "an operator decides" in done.err


@pytest.mark.rule("A2")
def test_the_story_is_lines_with_a_date_where_the_day_changes(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    core.store.told = hostile_events()
    one, every = call("audit", "show", "op-1").out.split("\n"), call("audit", "show").out.split("\n")
    assert one[0].startswith("10:00:00 submitted")
    assert one[1] == every[1] == "2026-03-03"
    assert every[0].startswith("10:00:00 op-1 submitted")
    events = call("audit", "show", "op-1", "--json").json["events"]
    assert EVENT_FIELDS - set(events[0]) == set()


@pytest.mark.rule("K4")
def test_a_result_is_masked_unless_revealed(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation()
    assert "sig=1" not in call("result", "op-1").out
    assert call("result", "op-1", "--reveal", "--json").json["fields"]["url"] == "https://h/p?sig=1"
    assert [c[2] for c in core.actions.calls] == [False, True]


@pytest.mark.rule("O5")
def test_a_fetch_that_is_not_done_is_no_success(core: FakeCore, call: Call, tmp_path: Path) -> None:
    core.store.rows["op-1"] = make_operation()
    assert call("fetch", "op-1", "--to", str(tmp_path / "r")).code == 0
    core.actions.outcome = ActionOutcome.UNKNOWN
    done = call("fetch", "op-1", "--to", str(tmp_path / "r"), "--json")
    assert (done.code, done.json["outcome"]) == (1, "unknown")
    (tmp_path / "there").touch()
    assert call("fetch", "op-1", "--to", str(tmp_path / "there")).code == 2
    assert len(core.actions.calls) == 2


def test_a_backup_is_written_once(core: FakeCore, call: Call, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"
    told = call("backup", str(target), "--json").json["backup"]
    assert (told["path"], told["bytes"], told["keep_with_it"]["missing"]) == (str(target), 4, None)
    assert call("backup", str(target)).code == 2


@pytest.mark.rule("A5")
def test_report_figures_are_one_document(core: FakeCore, call: Call) -> None:
    core.store.rows["op-1"] = make_operation(status=Status.SUCCEEDED)
    found = call("report", "--since", "7d", "--json").json
    assert (found["operations"], found["ended"], found["until"][:10]) == (1, 1, "2026-03-02")
    assert "operations: 1" in call("report").out


@pytest.mark.rule("K1")
def test_a_credential_is_stored_listed_and_removed_without_being_shown(
    core: FakeCore, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(CANARY.encode() + b"\n")))
    outputs = [
        call("credential", "set", "key", "--origin", "https://a.example", "--kind", "header:X-Api-Key"),
        call("credential", "list"),
        call("credential", "list", "--json"),
        call("credential", "mode", "key", "per_call"),
        call("credential", "mode", "key", "standing", "--json"),
    ]
    held = dict(core.backend.held())
    outputs.append(call("credential", "remove", "key"))
    assert [done.code for done in outputs] == [0, 0, 0, 0, 0, 0]
    assert list(held.values()) == [CANARY]
    assert not core.backend.held()
    assert all(CANARY not in done.out + done.err for done in outputs)
    assert outputs[2].json["credentials"][0]["origins"] == ["https://a.example:443"]
    asked = outputs[4].json
    assert [view["mode"] for view in asked["credentials"]] == ["per_call"], "only asked: the mode stays (G2)"
    assert (asked["asked"]["reason"], asked["asked"]["credential"]) == ("mode_change", "key")
    assert [done[:3] for done in core.actions.calls] == [("ask_mode", "key", "standing")]


@pytest.mark.rule("G4", "K6")
@pytest.mark.parametrize(
    "argv",
    [("show", "op-1"), ("list",), ("wait", "op-1"), ("audit", "show", "op-1"), ("audit", "show"), ("result", "op-1"),
     ("escalations",), ("close", "op-1", "--because", "x"), ("report",)],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_hostile_provider_texts_never_reach_an_output_raw(
    argv: tuple[str, ...], as_json: bool, core: FakeCore, call: Call
) -> None:
    core.store.rows["op-1"] = hostile_operation()
    core.store.told = hostile_events()
    done = call(*argv, *(["--json"] if as_json else []))
    assert done.code == 0
    for stream in (done.out, done.err):
        assert not [c for c in stream if c != "\n" and not c.isprintable()]
    if as_json:
        assert done.out.isascii()
        done.json  # noqa: B018 - it reads back


@pytest.mark.rule("K1", "K5")
def test_a_credential_that_buys_tokens_is_stored_with_where_it_buys_them(
    core: FakeCore, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(*argv: str) -> Any:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(f"client:{CANARY}\n".encode())))
        return call("credential", "set", "lake", "--origin", "https://lake.example", *argv)

    stored = asked("--kind", "oauth2", "--token-url", "https://lake.example/t", "--json")
    refused = [
        asked("--kind", "oauth2"),
        asked("--kind", "oauth2", "--token-url", "https://login.example/t"),
        asked("--kind", "github-app", "--scope", "1/2"),
        asked("--kind", "bearer", "--scope", "1/2"),
    ]
    assert stored.json["credentials"][0]["kind"] == "oauth2"
    assert [done.code for done in refused] == [2, 2, 2, 2]
    wanted = ["--token-url", "not among the origins", "no RSA private key", "--scope"]
    assert [said for said, done in zip(wanted, refused, strict=True) if said not in done.err] == []
    assert all(CANARY not in done.out + done.err for done in (stored, *refused))
