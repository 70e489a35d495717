"""`pause`: it says until when nothing is really sent, and knows the name of what it pauses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.console.cli.conftest import NOW, FakeCore, Outcome, make_operation

from pollcore.facts import Instant, Status, Submitted, iso

Call = Callable[..., Outcome]
HOUR = iso(Instant(NOW.wall + 3_600_000))[:16]


@pytest.mark.rule("G5")
def test_a_shorter_pause_changes_nothing_and_says_what_holds(core: FakeCore, call: Call) -> None:
    assert call("pause", "--provider", "acme", "--until", "1h").out.startswith(f"nothing is sent to acme before {HOUR}")
    done = call("pause", "--provider", "acme", "--until", "2s")
    assert done.code == 0
    assert done.out.startswith(f"acme: already paused until {HOUR}")
    assert "a pause is not shortened" in done.out
    told = call("pause", "--provider", "acme", "--until", "2s", "--json").json["pause"]
    assert (told["already_paused"], told["until"][:16], told["asked_until"] < told["until"]) == (True, HOUR, True)
    assert len(core.actions.calls) == 1


@pytest.mark.rule("G5")
def test_a_longer_pause_replaces_it(core: FakeCore, call: Call) -> None:
    call("pause", "--provider", "acme", "--until", "1h")
    told = call("pause", "--provider", "acme", "--until", "2h", "--json").json["pause"]
    assert (told["already_paused"], told["until"]) == (False, told["asked_until"])
    assert len(core.actions.calls) == 2


@pytest.mark.rule("G5")
def test_a_pause_of_the_provider_holds_for_its_accounts_and_not_the_other_way_round(core: FakeCore, call: Call) -> None:
    call("pause", "--provider", "acme", "--until", "1h")
    assert "already paused" in call("pause", "--provider", "acme", "--account", "a", "--until", "30m").out
    call("pause", "--provider", "lab", "--account", "a", "--until", "1h")
    assert "already paused" not in call("pause", "--provider", "lab", "--until", "30m").out
    assert "already paused" not in call("pause", "--provider", "lab", "--account", "b", "--until", "40m").out


def test_a_pause_that_is_over_does_not_hold(core: FakeCore, call: Call) -> None:
    call("pause", "--provider", "acme", "--until", "1h")
    core.clock.moment = core.clock.moment.after(3_700_000)
    assert "already paused" not in call("pause", "--provider", "acme", "--until", "2s").out


def test_a_name_that_nothing_has_is_refused_with_near_ones(core: FakeCore, call: Call) -> None:
    done = call("pause", "--provider", "acne", "--until", "1h", "--json")
    assert (done.code, done.json["error"]["code"]) == (2, "not_found")
    assert "did you mean acme?" in done.err
    assert core.actions.calls == []


def test_a_provider_whose_contract_is_gone_can_be_paused_while_operations_for_it_exist(
    core: FakeCore, call: Call
) -> None:
    given = Submitted(provider="gone", account="a", job_id="j")
    core.store.rows = {
        "op-1": make_operation("op-1", submitted=given),
        "op-2": make_operation("op-2", Status.CLOSED, submitted=given),
    }
    done = call("pause", "--provider", "gone", "--until", "1h", "--json")
    assert (done.code, done.json["pause"]["waiting_operations"]) == (0, 1)
    assert call("pause", "--provider", "gone", "--account", "b", "--until", "2h", "--json").json["pause"][
        "waiting_operations"
    ] == 0  # fmt: skip


def test_the_help_says_that_nothing_ends_it_early(call: Call) -> None:
    text = " ".join(call("pause", "--help").out.split())
    assert "final until its time" in text
    assert "neither a command nor the console ends it early" in text


@pytest.mark.rule("G5")
def test_a_real_store_keeps_the_longer_pause_that_was_told(real_home: Path, call: Call) -> None:
    first = call("pause", "--home", str(real_home), "--provider", "lab", "--until", "1h", "--json").json["pause"]
    again = call("pause", "--home", str(real_home), "--provider", "lab", "--until", "2s", "--json").json["pause"]
    assert again["until"] == first["until"]
    events = call("audit", "show", "--home", str(real_home), "--json").json["events"]
    assert [event["next_poll_at"] for event in events if event["event"] == "paused"] == [first["until"]]
    assert "did you mean lab?" in call("pause", "--home", str(real_home), "--provider", "lob", "--until", "1h").err


@pytest.mark.rule("G5")
def test_a_pause_of_more_than_a_week_is_refused_with_the_way_out(core: FakeCore, call: Call) -> None:
    done = call("pause", "--provider", "acme", "--until", "169h", "--json")
    assert (done.code, core.actions.calls) == (2, [])
    assert "more than 7 days ahead, and nothing ends a pause early: name a nearer time" in done.err
    assert call("pause", "--provider", "acme", "--until", "167h").code == 0


@pytest.mark.slow
@pytest.mark.rule("G5")
def test_a_pause_is_told_by_whom_and_until_when_wherever_one_looks(real_home: Path, call: Call) -> None:
    home = ("--home", str(real_home))
    call("submit", *home, "--provider", "lab", "--job-id", "j", "--id", "op-a")
    assert call("show", "op-a", *home, "--json").json["paused"] is None
    made = call("pause", *home, "--provider", "lab", "--until", "1h", "--caller", "nightly", "--json").json["pause"]
    assert made["by"].endswith(", caller nightly")
    again = call("pause", *home, "--provider", "lab", "--until", "1m")
    assert f"already paused until {made['until']} by {made['by']}" in again.out
    paused = call("show", "op-a", *home, "--json").json["paused"]
    assert (paused["until"], paused["by"], paused["account"]) == (made["until"], made["by"], None)
    text = call("show", "op-a", *home).out
    assert f"nothing is sent to the provider before {made['until']}, by {made['by']}" in text
    assert f"(local_backoff, paused by {made['by']})" in text
    told = f"lab, until {made['until']}, by {made['by']}"
    assert f"paused: {told}" in call("list", *home).err
    assert call("list", *home, "--json").json["pauses"] == [paused]
    assert f". pause 1: {told}" in call("doctor", *home).out


@pytest.mark.rule("G5")
def test_a_pause_of_another_account_is_not_told_of_an_operation(real_home: Path, call: Call) -> None:
    home = ("--home", str(real_home))
    call("submit", *home, "--provider", "lab", "--job-id", "j", "--id", "op-a")
    call("pause", *home, "--provider", "lab", "--account", "other", "--until", "1h")
    assert call("show", "op-a", *home, "--json").json["paused"] is None
    assert [one["account"] for one in call("list", *home, "--json").json["pauses"]] == ["other"]
