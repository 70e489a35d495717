"""`archive`, `audit verify --archive`, `audit export` and `audit show` from the command line, on one home."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from pollconsole.cli import entry
from pollcore.assembly import parts as assembled
from tests.audit.dying_clock import LateClock
from tests.audit.test_dying import copied, laid_out


@pytest.mark.rule("S7", "A3", "A4")
async def test_what_ended_long_ago_leaves_by_command_and_is_proved_by_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembled, "SystemClock", LateClock)
    home = copied(await laid_out(tmp_path / "model", rotated=True), tmp_path / "home")

    async def call(*words: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(entry.run, (*words, "--home", str(home)))
        told = capsys.readouterr()
        return code, told.out, told.err

    code, text, _ = await call("archive", "--before", "5d", "--dry-run")
    assert (code, text.startswith("would leave: 5 requests of 2 operations, ")) == (0, True)
    assert "1 epoch, " in text
    assert " kB" in text
    target = tmp_path / "old.jsonl"
    code, text, _ = await call("archive", "--before", "5d", "--to", str(target), "--json")
    made = json.loads(text)
    assert (code, made["archive"], made["operations"], made["requests"], made["file"]) == (0, 1, 2, 5, str(target))
    assert made["bytes"] == target.stat().st_size
    code, text, _ = await call("archive", "--before", "5d")
    assert (code, text.splitlines()[0]) == (0, "nothing to archive")
    # the rest, the file, both
    code, text, _ = await call("audit", "verify", "--key", made["key"])
    assert (code, f"are in {target} (sha256 {made['sha256']})" in text) == (0, True)
    code, text, _ = await call("audit", "verify", str(target), "--key", made["key"], "--json")
    assert (code, json.loads(text)["verdict"]) == (0, "intact")
    code, text, _ = await call("audit", "verify", "--archive", str(target), "--json")
    report = json.loads(text)
    assert (code, report["first_link"], [one["held"] for one in report["archives"]]) == (0, 1, [True])
    assert (await call("audit", "verify", "--archive", str(tmp_path / "none")))[0] == 2
    assert (await call("audit", "verify", str(target), "--archive", str(target)))[0] == 2
    target.write_bytes(target.read_bytes().replace(b'"running"', b'"ranning"', 1))
    assert (await call("audit", "verify", str(target)))[0] == 20
    assert (await call("audit", "verify", "--archive", str(target)))[0] == 20
    assert (await call("audit", "verify"))[0] == 0
    # the story says where its beginning is, the books add up, what is left can be exported
    _, _, note = await call("audit", "show", "op-job-2")
    assert f"earlier events are in archive 1, {target}" in note
    rest = tmp_path / "rest.jsonl"
    assert (await call("audit", "export", str(rest)))[0] == 0
    assert (await call("audit", "verify", str(rest), "--key", made["key"]))[0] == 0
    code, text, _ = await call("doctor", "--json")
    assert "archived" not in json.dumps([f for f in json.loads(text)["findings"] if f["state"] == "wrong"])
    assert (await call("archive", "--before", "1min"))[0] == 2
    assert (await call("archive"))[0] == 2


@pytest.mark.rule("S7")
async def test_without_an_epoch_that_is_over_the_links_stay_and_it_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembled, "SystemClock", LateClock)
    home = copied(await laid_out(tmp_path / "model", rotated=False), tmp_path / "home")
    at = ("--home", str(home))
    assert await asyncio.to_thread(entry.run, ("archive", "--before", "5d", *at)) == 0
    text = capsys.readouterr().out
    assert "0 links of 0 epochs" in text
    assert "no key epoch is over" in text
    assert await asyncio.to_thread(entry.run, ("audit", "new-keys", *at)) == 0
    assert await asyncio.to_thread(entry.run, ("archive", "--before", "5d", *at)) == 0
    assert "is younger, or not over" in capsys.readouterr().out  # the archive's own record is of today
