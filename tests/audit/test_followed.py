"""Anchors that follow at once: a grant's own rows, a command's commit; and keys that move out of the home's files."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from pollconsole.bridge import proof
from pollcore.adapters.audit_keys import KeyRoom, Safes, new_keys
from pollcore.adapters.audit_read import compare
from pollcore.adapters.audit_verify import Wanted, verify_store
from pollcore.assembly import Core
from pollcore.chain.findings import Verdict
from pollcore.facts import ChoiceKind, CredentialUnavailable, EventName, Refused, StopDetail
from tests.audit.test_home import SHORT, anchor, lock, proved
from tests.controller.bank import DONE, RUNNING
from tests.controller.house import House, house, pick, until

V = Verdict


@pytest.mark.rule("A4", "G2")
async def test_the_rows_that_carry_a_grant_out_are_signed_with_them_and_anchored_at_once(tmp_path: Path) -> None:
    async with house(tmp_path, SHORT) as h:
        await h.submit("job-1", RUNNING)
        await h.run()
        shown = await h.card()
        await h.press(shown, pick(shown, ChoiceKind.EXTEND))
        granted = h.core._chain.granted
        assert granted > 0
        assert [seq for seq, _ in await h.core.store.audit_notes(granted - 1, 1)] == [granted]
        # no heartbeat comes here: the anchor follows the grant by itself
        await until(lambda: anchor(h).seq >= granted, "the anchor follows the grant")
        assert verify_store(h.home / "pollconsole.db", Wanted()).verdict is V.INTACT


@pytest.mark.rule("A4")
async def test_a_command_that_writes_leaves_its_links_signed_and_anchored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
    command = Core(h.home, "cli", h.core._over)
    async with command as core:
        await core.actions.lower("op-job-1", ChoiceKind.CLOSE, "enough", "me")
        tip = await core.store.audit_tip()
    assert tip is not None
    assert anchor(h).seq == tip.seq
    report = proved(h)
    assert (report.verdict, report.signed_to) == (V.INTACT, tip.seq)
    # one that only looks asks the keyring nothing
    asked: list[object] = []
    monkeypatch.setattr(h.keyring, "get_password", lambda *_: asked.append(_))
    async with Core(h.home, "cli", h.core._over) as core:
        assert await core.store.operation("op-job-1") is not None
    assert asked == []


@pytest.mark.rule("A4")
async def test_a_locked_keyring_holds_up_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with house(tmp_path) as h:
        await h.submit("job-1", RUNNING, DONE)
    lock(h, monkeypatch)
    async with Core(h.home, "cli", h.core._over) as core:
        await core.actions.lower("op-job-1", ChoiceKind.CLOSE, "enough", "me")
    monkeypatch.undo()
    assert proved(h).verdict is V.TAIL
    async with h.open() as core:
        assert not core.audit.state.alarm
    assert proved(h).verdict is V.INTACT


async def begun_without_a_keyring(h: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home whose keys lie in its own files, with one life in it; the keyring works again afterwards."""
    shutil.rmtree(h.home)
    h.write_contract()
    with monkeypatch.context() as away:
        lock(h, away)
        async with h.open() as core:
            h.core = core
            await h.submit("job-1", RUNNING, DONE)
            await h.run()
    assert (h.home / "reading.key").exists()


@pytest.mark.rule("A4", "K2")
async def test_keys_of_a_home_begun_without_a_keyring_move_into_it_with_their_anchor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house(tmp_path) as h:
        first = h.core
        h.home = tmp_path / "other"
        h.home.mkdir()
        await begun_without_a_keyring(h, monkeypatch)
        async with Core(h.home, "cli", first._over) as core:
            h.clock.jump(120_000)
            made = await proof.move_keys(core, "ops@here")
            assert made == {"keys_in": "keyring", "epoch": 1}
        assert not list(h.home.glob("reading.key*"))
        async with h.open() as core:
            h.core = core
            assert (core.audit.state.why, core.audit.state.alarm) == (None, False)
            await h.submit("job-2", DONE)
            await h.run()
            assert (await h.op("op-job-2")).result is not None
            found = await compare(core.store, core.audit.room)
            assert (found.unreadable, found.differing_count) == (0, 0)
            assert [e.operator for e in await h.events(EventName.AUDIT_KEYS)] == ["ops@here"]
        report = proved(h)
        assert (report.verdict, report.epoch, report.known_to) == (V.INTACT, 1, report.last), report.faults
        with pytest.raises(Refused, match="nothing to move"):
            async with Core(h.home, "cli", first._over) as core:
                await proof.move_keys(core, "ops@here")
        h.core = first


@pytest.mark.rule("A4", "K2")
@pytest.mark.parametrize("step", ["settled", "end"])
async def test_a_move_that_was_cut_off_before_its_new_keys_makes_them_when_it_is_given_again(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every program of the user could read the old ones: they must not stay in force because a process died."""
    from pollcore.adapters import audit_move

    async with house(tmp_path) as h:
        first = h.core
        h.home = tmp_path / "other"
        h.home.mkdir()
        await begun_without_a_keyring(h, monkeypatch)
        h.clock.jump(120_000)

        def dies(*_: object) -> None:
            raise OSError("cut off")

        with monkeypatch.context() as dying:
            dying.setattr(audit_move if step == "settled" else audit_move.Move, step, dies)
            with pytest.raises(OSError, match="cut off"):
                async with Core(h.home, "cli", first._over) as core:
                    await proof.move_keys(core, "ops@here")
        assert not (h.home / "reading.key").exists()
        async with Core(h.home, "cli", first._over) as core:
            made = await proof.move_keys(core, "ops@here")
        assert (made["keys_in"], made["epoch"] >= 1) == ("keyring", True)
        assert not list(h.home.glob("reading.key*"))
        report = proved(h)
        assert (report.verdict, report.epoch) == (V.INTACT, made["epoch"]), report.faults
        with pytest.raises(Refused, match="nothing to move"):
            async with Core(h.home, "cli", first._over) as core:
                await proof.move_keys(core, "ops@here")
        h.core = first


@pytest.mark.rule("A4", "K2")
async def test_a_move_that_was_cut_off_is_ended_by_the_next_one_and_none_goes_on_beside_a_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pollcore.adapters.audit_move import Move

    async with house(tmp_path) as h:
        first = h.core
        h.home = tmp_path / "other"
        h.home.mkdir()
        await begun_without_a_keyring(h, monkeypatch)
        named = tmp_path / "elsewhere" / "audit.key"
        named.parent.mkdir(mode=0o700)
        h.write_config(f'[audit]\nkey_file = "{named}"\n')
        async with h.open() as running:
            with h.worker(running) as controller:
                await controller.run(asyncio.Event(), until_idle=True, for_ms=1_000, watch=False)
                with pytest.raises(Refused, match="stop the core first"):
                    async with Core(h.home, "cli", first._over) as core:
                        await proof.move_keys(core, "ops@here")

        def dies(self: Move) -> None:
            raise OSError("cut off")

        with monkeypatch.context() as dying:
            dying.setattr(Move, "remove", dies)
            with pytest.raises(OSError, match="cut off"):
                async with Core(h.home, "cli", first._over) as core:
                    await proof.move_keys(core, "ops@here")
        assert (h.home / "reading.key").exists()
        assert named.exists()
        async with Core(h.home, "cli", first._over) as core:
            assert (await proof.move_keys(core, "ops@here"))["keys_in"] == str(named)
        assert not list(h.home.glob("reading.key*"))
        async with h.open() as core:
            assert (core.audit.state.why, core.audit.state.epoch) == (None, 1)
        h.core = first


@pytest.mark.rule("K2", "O6")
async def test_a_key_file_that_cannot_be_written_is_told_and_not_the_keyring_that_is_missing_beside_it(
    tmp_path: Path,
) -> None:
    class Failing:
        where = "key file"

        def __init__(self, error: Exception) -> None:
            self.error = error

        def get(self, name: str) -> str | None:
            raise self.error

        def set(self, name: str, value: str) -> None:
            raise self.error

        def delete(self, name: str) -> None:
            raise self.error

    full = Failing(Refused("reading.key.audit: No space left on device", code="key_file"))
    absent = Failing(CredentialUnavailable("no usable keyring", StopDetail.KEYRING_ABSENT))
    for places in ((full, absent), (absent, full)):
        room = KeyRoom(Safes(lambda places=places: iter(places), absent, tmp_path / "lock"))  # type: ignore[misc]
        keys = new_keys(bytes(16), 0, 1, 1)
        with pytest.raises(Refused, match="No space left"):
            await room.keep(keys)
        with pytest.raises(Refused, match="No space left"):
            await room.signer(keys.log)
