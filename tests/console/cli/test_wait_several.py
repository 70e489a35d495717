"""`wait OP OP ...`: which code several operations end with, and what is told of each."""

from __future__ import annotations

from typing import Any

import pytest
from tests.console.cli.conftest import FakeCore, make_operation

from pollconsole.cli.wait import MAX_WAITED
from pollcore.facts import Status

Call = Any


def lay_out(core: FakeCore, **statuses: Status) -> None:
    core.store.beat()
    for name, status in statuses.items():
        core.store.rows[name] = make_operation(name, status=status)


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ((Status.SUCCEEDED, Status.SUCCEEDED), 0),
        ((Status.SUCCEEDED, Status.FAILED), 11),
        ((Status.CANCELLED, Status.FAILED), 11),
        ((Status.ESCALATED, Status.EXPIRED), 12),
        ((Status.ESCALATED, Status.CLOSED), 14),
        ((Status.SUCCEEDED, Status.AWAITING_APPROVAL), 10),
    ],
)
def test_all_ends_with_the_worst_code_whatever_the_order(
    statuses: tuple[Status, Status], code: int, core: FakeCore, call: Call
) -> None:
    lay_out(core, a=statuses[0], b=statuses[1])
    assert call("wait", "a", "b").code == code
    assert call("wait", "b", "a", "--all").code == code


def test_all_goes_on_while_one_waits_and_says_which_did_not_end(core: FakeCore, call: Call) -> None:
    lay_out(core, a=Status.SUCCEEDED, b=Status.WAITING)
    done = call("wait", "a", "b", "--timeout", "3s", "--json")
    assert (done.code, core.store.waits > 1) == (13, True)
    assert [(view["operation_id"], view["exit_code"]) for view in done.json["operations"]] == [("a", 0), ("b", 13)]
    assert done.json["exit_code"] == 13


def test_any_ends_with_the_first_that_ended_and_leaves_the_others_open(core: FakeCore, call: Call) -> None:
    lay_out(core, a=Status.WAITING, b=Status.WAITING)

    def end(waits: int) -> None:
        if waits == 2:
            core.store.rows["b"] = make_operation("b", status=Status.FAILED)

    core.store.on_wait = end
    done = call("wait", "a", "b", "--any", "--json")
    assert (done.code, core.store.waits) == (11, 2)
    assert [view["exit_code"] for view in done.json["operations"]] == [None, 11]
    assert "you may not" in done.json["operations"][0]["next"]


def test_any_takes_the_first_named_of_those_that_ended_already(core: FakeCore, call: Call) -> None:
    lay_out(core, a=Status.WAITING, b=Status.CANCELLED, c=Status.SUCCEEDED)
    assert call("wait", "a", "b", "c", "--any").code == 12
    assert call("wait", "a", "c", "b", "--any").code == 0
    lay_out(core, d=Status.WAITING)
    assert call("wait", "a", "d", "--any", "--timeout", "0s").code == 13


@pytest.mark.rule("O8")
def test_without_a_core_several_end_with_its_code_and_an_end_is_still_an_end(core: FakeCore, call: Call) -> None:
    lay_out(core, a=Status.WAITING, b=Status.WAITING)
    core.store.beats = []
    assert call("wait", "a", "b").code == 15
    lay_out(core, b=Status.FAILED)
    core.store.beats = []
    assert call("wait", "a", "b", "--any").code == 11
    assert call("wait", "a", "b").code == 11


def test_what_is_too_much_unknown_or_contradictory_is_refused(core: FakeCore, call: Call) -> None:
    lay_out(core, a=Status.SUCCEEDED)
    assert call("wait", "a", "--any", "--all").code == 2
    assert call("wait", "a", "nope").code == 2
    assert "a; " not in call("wait", "a", "a").err
    many = call("wait", *[f"op-{n}" for n in range(MAX_WAITED + 1)])
    assert (many.code, str(MAX_WAITED) in many.err) == (2, True)


@pytest.mark.rule("S3", "G5")
def test_the_document_of_one_says_what_may_be_done_next(core: FakeCore, call: Call) -> None:
    lay_out(core, a=Status.ESCALATED)
    done = call("wait", "a", "--json")
    assert done.code == 10
    assert done.json["next"].startswith("Stop and report")
    assert "exit_code" not in done.json
