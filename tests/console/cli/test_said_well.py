"""What the command line says is whole: words at 80 columns, a proposal once, a card that was settled, a wrong home."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.console.cli.conftest import FakeCore, Outcome, make_operation

from pollconsole.cli import lower, out
from pollcore.contract.proposing import Field, proposal
from pollcore.facts import Status, StopReason

Call = Callable[..., Outcome]


@given(st.text("ab -", max_size=200), st.integers(0, 90))
def test_a_folded_line_holds_the_same_words_and_breaks_none_of_them(line: str, width: int) -> None:
    parts = list(out.folded(line, width))
    assert " ".join(parts).split() == line.split()
    for part in parts:
        assert width <= out.MIN_WIDTH or len(part) <= width or len(part.split()) <= 1


def test_what_is_no_terminal_gets_its_lines_whole(capsys: pytest.CaptureFixture[str]) -> None:
    out.text("word " * 100)
    assert capsys.readouterr().out.count("\n") == 1


@pytest.mark.rule("S2")
def test_fields_of_several_answers_are_proposed_once_in_the_order_of_their_likeness() -> None:
    bodies = [{"job_id": "x", "id": "good-p", "status": "a"}, {"job_id": "y", "id": "probe-1", "status": "b"}]
    found = proposal(bodies, "good-p")
    assert found.job_id_paths == (Field("body.id", "good-p"), Field("body.job_id", "x"))
    assert [one.path for one in proposal(bodies).job_id_paths] == ["body.id", "body.job_id"]
    assert found.state_paths == (Field("body.status", "a"),)


@pytest.mark.rule("E7")
def test_a_close_that_settles_the_card_of_an_end_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    view = {"operation_id": "op-1", "status": Status.FAILED, "stop_reason": StopReason.JOB_FAILED, "escalation": None}
    common = lower.Common()
    lower._tell(common, view, lower.ChoiceKind.CLOSE)
    assert "its card is settled" in capsys.readouterr().out
    lower._tell(common, {**view, "status": Status.CLOSED}, lower.ChoiceKind.CLOSE)
    lower._tell(common, {**view, "escalation": {"id": "esc-1"}}, lower.ChoiceKind.CLOSE)
    assert "settled" not in capsys.readouterr().out


def test_a_list_of_a_folder_without_a_store_says_so(call: Call, core: FakeCore, tmp_path: Path) -> None:
    said = call("list", "--home", str(tmp_path)).err
    assert f"no operations: {tmp_path} held no store" in said
    core.store.rows["op-1"] = make_operation()
    assert "no store" not in call("list", "--home", str(tmp_path)).err


def test_a_folder_with_other_things_alone_is_no_home_and_nothing_is_made_there(call: Call, tmp_path: Path) -> None:
    (tmp_path / "passwd").touch()
    told = call("list", "--home", str(tmp_path))
    assert told.code == 2
    assert f"no home at {tmp_path}: it holds other things" in told.err
    assert [one.name for one in tmp_path.iterdir()] == ["passwd"]
    (tmp_path / "config.toml").touch()
    assert call("list", "--home", str(tmp_path)).code == 0


def test_check_of_a_name_names_the_file_of_the_home(call: Call, tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert call("provider", "new", "tinyjobs", "--home", str(home)).code == 0
    told = call("provider", "check", "tinyjobs", "--home", str(home))
    assert told.code == 2
    assert f"pollconsole provider check {home / 'providers' / 'tinyjobs.toml'}" in told.err


def test_the_help_of_the_demo_offers_no_option_that_it_refuses(call: Call) -> None:
    told = call("demo", "--help").out
    assert "--plain" in told
    assert "--home" not in told
    assert "--json" not in told
    assert "leave --home out" in call("demo", "--home", "x").err
