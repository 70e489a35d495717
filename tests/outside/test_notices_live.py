"""Notices over real processes: a card, an end, a deadline; once, by one sender, grouped; no address anywhere."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from pathlib import Path

import pytest

from tests.outside.world import LIMIT_S, World, until
from tests.trust import canary

pytestmark = pytest.mark.slow
QUICK = '[notices]\nevents = ["new_card", "deadline_near", "finished"]\ngroup = "0s"\n'


def address(world: World, secret: str = "token") -> bytes:
    return f"json://user:{secret}@127.0.0.1:{world.receiver.port}/hook/{secret}".encode()


def of_processes() -> list[str]:
    return [path.name for path in Path("/proc").iterdir() if path.name.isdecimal()]


def open_to_others(pid: str) -> str:
    """Arguments and environment of a process, as far as they can be read."""
    found = b""
    for name in ("cmdline", "environ"):
        with contextlib.suppress(OSError):
            found += Path(f"/proc/{pid}/{name}").read_bytes()
    return found.decode(errors="replace")


def bodies(world: World) -> str:
    return "\n".join(f"{one['title']}\n{one['message']}" for one in world.receiver.got)


@pytest.mark.rule("K1", "G5", "E10")
def test_a_card_and_an_end_are_told_once_and_no_address_is_anywhere(world: World) -> None:
    search = canary.Search()
    secret = search.add("address", canary.value("notice", odd="~_.-"))
    world.call("notice", "set", "ops", given=address(world, secret) + b"\n")
    world.settings(QUICK + '[log]\nfile = "run.log"\n')
    world.submit("op-old")
    world.state("op-old", "strange-state <script>")
    with world.running("--log-json"):
        # a provider's own word for a state is in no notice
        until(lambda: world.json("show", "op-old")["status"] == "escalated")
        world.submit("op-good")
        world.state("op-good", "succeeded")
        until(lambda: "op-good" in bodies(world), "the end was not told")
        for name in ("op-a", "op-b"):
            world.submit(name)
            world.state(name, "failed")
        until(lambda: "op-a" in bodies(world) and "op-b" in bodies(world), "the cards were not told")
        listed = world.json("notice", "list")
        assert (listed["sender"], listed["addresses"][0]["service"]) == (True, "json")
        assert listed["addresses"][0]["sent_at"] is not None
    told = bodies(world)
    assert told.count("op-good") == 1
    assert [told.count(name) for name in ("op-a", "op-b")] == [1, 1]
    assert "decision wanted: lab, job_failed (op-a)" in told
    assert "strange" not in told
    assert "answer is given in the console" in told
    assert "http" not in told
    # a second core begins where the first ended
    before = len(world.receiver.got)
    with world.running():
        world.submit("op-next")
        world.state("op-next", "succeeded")
        until(lambda: len(world.receiver.got) > before)
    assert "op-next" in world.receiver.got[-1]["message"]
    assert len(world.receiver.got) == before + 1
    assert all(path.startswith("/hook/") for path in world.receiver.paths)
    assert {where: found for where, data in world.everything() if (found := search.found(data))} == {}
    assert secret in world.keyring.read_text()


@pytest.mark.rule("E10")
def test_many_questions_of_one_cause_are_one_notice(world: World) -> None:
    world.call("notice", "set", "ops", given=address(world) + b"\n")
    world.settings(QUICK.replace('"0s"', '"3s"'))
    with world.running():
        until(lambda: world.json("notice", "list")["sender"])
        for number in range(5):
            world.state(f"op-{number}", "a-state-nobody-knows")
            world.submit(f"op-{number}")
        until(lambda: world.receiver.got)
        until(lambda: len(world.json("escalations")["escalations"]) == 5)
    assert len(world.receiver.got) == 1
    first = world.receiver.got[0]
    assert first["title"].endswith("1 decision waits")
    assert "unknown_state" in first["message"]
    assert "a-state-nobody-knows" not in first["message"]


def all_is_kept(world: World) -> bool:
    shown = world.json("notice", "list")
    return not shown["waiting"] and not shown["under_way"]


@pytest.mark.rule("G5")
def test_of_two_cores_one_sends_and_the_other_takes_over_when_it_is_killed(world: World) -> None:
    world.call("notice", "set", "ops", given=address(world) + b"\n")
    world.settings(QUICK)
    with world.running() as second:
        until(lambda: world.json("notice", "list")["sender"])
        with world.running():
            for number in range(3):
                world.submit(f"op-{number}")
                world.state(f"op-{number}", "succeeded")
            until(lambda: all(f"op-{number}" in bodies(world) for number in range(3)))
            until(lambda: all_is_kept(world), "what was sent is recorded: else it is sent again")
            os.kill(second.pid, signal.SIGKILL)
            second.wait(LIMIT_S)
            world.submit("op-after")
            world.state("op-after", "succeeded")
            until(lambda: "op-after" in bodies(world), "nobody took over")
        assert [bodies(world).count(f"op-{number}") for number in range(3)] == [1, 1, 1]
        second.returncode = 0  # it was meant to die


@pytest.mark.rule("O6")
def test_a_service_that_refuses_or_hangs_is_recorded_and_holds_up_no_poll(world: World) -> None:
    secret = canary.value("hang", odd="~_.-")
    world.call("notice", "set", "ops", given=address(world, secret) + b"\n")
    world.settings(QUICK)
    world.receiver.answer = 500
    with world.running():
        until(lambda: world.json("notice", "list")["sender"])
        world.state("op-1", "succeeded")
        world.submit("op-1")
        failed = until(lambda: (one := world.json("notice", "list")["addresses"][0])["failed_at"] and one)
        assert failed["why"] == "the service did not take it, or was not reached"
        world.receiver.answer, world.receiver.hang = 200, threading.Event()
        until(lambda: len(world.receiver.paths) >= 2, "it was not tried again")
        # the process that sends was told the address on its standard input alone
        assert [pid for pid in of_processes() if secret in open_to_others(pid)] == []
        # while a message hangs, polls go on and end
        world.state("op-2", "succeeded")
        world.submit("op-2")
        assert world.json("wait", "op-2", "--timeout", "80s")["status"] == "succeeded"
        world.receiver.hang.set()
        until(lambda: "op-1" in bodies(world), "it never arrived")
    assert b"notice to ops was not sent" in world.said
    assert b"it is tried again" in world.said


@pytest.mark.rule("K1")
def test_an_address_is_tested_and_removed_and_a_wrong_one_is_not_stored(world: World) -> None:
    world.call("notice", "set", "wrong", given=b"nosuchservice://secret-word/x\n", code=2)
    world.call("notice", "set", "wrong", given=b"no address\n", code=2)
    assert b"secret-word" not in world.said
    world.call("notice", "set", "ops", given=address(world) + b"\n")
    world.call("notice", "test", "ops")
    assert world.receiver.got[0]["title"] == "pollconsole: a test"
    world.receiver.answer = 403
    assert world.json("notice", "test", "ops", code=1)["sent"] is False
    world.call("notice", "remove", "ops")
    world.call("notice", "test", "ops", code=2)
    assert world.json("notice", "list")["addresses"] == []
    assert "hook" not in world.keyring.read_text()
    told = [event["text"] for event in world.json("audit", "show")["events"] if event["event"] == "credential_changed"]
    assert told == ["address of notices ops (json) set", "address of notices ops (json) removed"]


@pytest.mark.rule("K1")
def test_without_notices_nothing_is_sent_and_turned_on_again_they_tell_nothing_of_between(world: World) -> None:
    world.call("notice", "set", "ops", given=address(world) + b"\n")
    world.settings(QUICK)
    with world.running():
        world.state("op-0", "succeeded")
        world.submit("op-0")
        until(lambda: "op-0" in bodies(world))
    world.settings("")
    with world.running():
        world.state("op-1", "succeeded")
        world.submit("op-1")
        world.json("wait", "op-1", "--timeout", "80s")
    assert world.json("notice", "list")["events"] == []
    world.settings(QUICK)
    with world.running():
        world.state("op-2", "succeeded")
        world.submit("op-2")
        until(lambda: "op-2" in bodies(world))
    assert "op-1" not in bodies(world)
    assert len(world.receiver.got) == 2
