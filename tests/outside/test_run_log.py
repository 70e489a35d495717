"""What `run` logs: a file of mode 0600 that turns over, JSON or plain, without any text of others."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from pollconsole.cli.run_log import RunLog
from pollcore.facts import AuditEvent, DelaySource, EventName, Instant, Refused
from tests.console.cli.conftest import CANARY, HOSTILE, NOW
from tests.outside.world import World

EVENT = AuditEvent(
    at=NOW.wall,
    event=EventName.POLLED,
    operation_id="op-1",
    state=HOSTILE,
    state_before=CANARY,
    http=200,
    request_id=CANARY,
    decision="wait",
    requests_used=3,
    max_requests=12,
    next_poll_at=Instant(NOW.wall + 14_000),
    delay_source=DelaySource.LOCAL_BACKOFF,
    caller=CANARY,
    operator=CANARY,
    text=f"{CANARY} {HOSTILE}",
    notes=(CANARY,),
)


def written(path: Path, *events: AuditEvent, as_json: bool = False) -> list[str]:
    log = RunLog(as_json=as_json, path=path, max_size=1 << 20, copies=1)
    for event in events:
        log.event(event)
    log.close()
    return path.read_text().splitlines()


@pytest.mark.rule("K1")
@pytest.mark.parametrize("as_json", [True, False])
def test_a_line_holds_reasons_and_numbers_and_no_text_of_others(
    as_json: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = written(tmp_path / "log", EVENT, as_json=as_json)
    said = capsys.readouterr().err
    assert CANARY not in line + said
    assert "\x1b" not in line
    if as_json:
        assert json.loads(line) == json.loads(said) == {
            "at": "2026-03-02T10:00:00Z",
            "event": "polled",
            "operation_id": "op-1",
            "http": 200,
            "decision": "wait",
            "requests_used": 3,
            "max_requests": 12,
            "next_poll_at": "2026-03-02T10:00:14Z",
            "delay_source": "local_backoff",
        }  # fmt: skip
    else:
        assert said == ""
        assert line == (
            "2026-03-02T10:00:00Z op-1: polled, http 200, wait, 3 of 12, next poll 10:00:14 from local_backoff"
        )


def test_an_id_that_a_caller_chose_stays_on_its_line(tmp_path: Path) -> None:
    strange = AuditEvent(at=NOW.wall, event=EventName.CLOSED, operation_id=HOSTILE)
    for as_json in (True, False):
        (line,) = written(tmp_path / f"log-{as_json}", strange, as_json=as_json)
        assert line.isprintable()


def test_the_file_is_its_owners_alone_and_turns_over_at_its_size(tmp_path: Path) -> None:
    path = tmp_path / "log"
    log = RunLog(as_json=False, path=path, max_size=2_000, copies=2)
    for _ in range(100):
        log.event(EVENT)
    log.close()
    files = sorted(tmp_path.iterdir())
    assert [one.name for one in files] == ["log", "log.1", "log.2"]
    assert [stat.S_IMODE(one.stat().st_mode) for one in files] == [0o600] * 3
    assert all(one.stat().st_size <= 2_000 for one in files)


def test_a_link_or_a_folder_is_no_log(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for name in ("link", "", "absent/log"):
        with pytest.raises(Refused, match=r"log\.file"):
            RunLog(as_json=False, path=tmp_path / name, max_size=1 << 20, copies=1)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.slow
@pytest.mark.rule("K1", "A1")
def test_a_run_logs_its_life_and_every_operation_and_no_word_of_the_provider(world: World) -> None:
    world.settings('[log]\nfile = "logs.jsonl"\n')
    world.submit("op-1")
    world.state("op-1", "a-word-of-the-provider")
    with world.running("--log-json"):
        world.json("wait", "op-1", "--timeout", "80s", code=10)
    path = world.home / "logs.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [line["text"].partition(" ")[0] for line in lines if line["event"] == "core"][:1] == ["core"]
    stopped = next(line for line in lines if line["event"] == "polled" and line.get("decision") == "escalate")
    assert (stopped["operation_id"], stopped["reason"], stopped["http"]) == ("op-1", "unknown_state", 200)
    assert "core ended" in lines[-1]["text"]
    assert "a-word-of-the-provider" not in path.read_text()
    assert world.provider.url not in path.read_text()
