"""Sealed columns: no secret to write, the reading key to read other runs' writing, nothing altered unnoticed."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pollcore.adapters import sealer as module
from pollcore.adapters.keyring_store import MemoryBackend, Vault
from pollcore.adapters.reading_key import MemoryPublicKey, ReadingKeys, read_key_file, write_key_file
from pollcore.adapters.sealer import MemoryRunKeys, ReadingKey, RunKey, RunSealer, public_raw
from pollcore.facts import CredentialUnavailable, Refused, SealedUnreadable
from pollcore.ports import Sealer
from tests.adapters.keyrings import Failing, Hanging

KEY = ReadingKey.generate()
PURPOSE = "operation.status_url"


@pytest.mark.rule("A4")
@given(plain=st.binary(max_size=300), purpose=st.text(max_size=20))
def test_a_run_opens_what_it_sealed_without_any_reading_key(plain: bytes, purpose: str) -> None:
    made: Sealer = RunSealer(KEY.public_key_text, MemoryRunKeys())
    sealed = made.seal(purpose, plain)
    assert made.open(purpose, sealed) == plain
    assert sealed != made.seal(purpose, plain)
    assert len(plain) < 8 or plain not in sealed


@pytest.mark.rule("A4")
def test_another_run_needs_the_reading_key_and_only_that() -> None:
    keys = MemoryRunKeys()
    sealed = RunSealer(KEY.public_key_text, keys).seal(PURPOSE, b"https://h.example/?sig=1")
    assert RunSealer(KEY.public_key_text, keys, lambda: KEY).open(PURPOSE, sealed) == b"https://h.example/?sig=1"
    with pytest.raises(SealedUnreadable, match="not at hand"):
        RunSealer(KEY.public_key_text, keys).open(PURPOSE, sealed)
    later: list[ReadingKey] = []
    waiting = RunSealer(KEY.public_key_text, keys, lambda: later[0] if later else None)
    with pytest.raises(SealedUnreadable):
        waiting.open(PURPOSE, sealed)
    later.append(KEY)
    assert waiting.open(PURPOSE, sealed) == b"https://h.example/?sig=1"


@pytest.mark.rule("A4")
def test_another_pair_opens_nothing_and_says_which_key_is_wanted() -> None:
    keys = MemoryRunKeys()
    sealed = RunSealer(KEY.public_key_text, keys).seal(PURPOSE, b"x")
    other = ReadingKey.generate()
    with pytest.raises(SealedUnreadable, match=f"sealed to reading key {KEY.key_id}") as caught:
        RunSealer(other.public_key_text, keys, lambda: other).open(PURPOSE, sealed)
    assert caught.value.__context__ is None


@pytest.mark.rule("A4")
@given(data=st.data())
def test_no_altered_or_moved_blob_opens(data: st.DataObject) -> None:
    made = RunSealer(KEY.public_key_text, MemoryRunKeys(), lambda: KEY)
    sealed = made.seal(PURPOSE, b"some text")
    place = data.draw(st.integers(0, len(sealed) - 1))
    flipped = bytearray(sealed)
    flipped[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(SealedUnreadable):
        made.open(PURPOSE, bytes(flipped))
    with pytest.raises(SealedUnreadable):
        made.open(PURPOSE, sealed[: data.draw(st.integers(0, len(sealed) - 1))])
    with pytest.raises(SealedUnreadable):
        made.open("operation.result", sealed)


@pytest.mark.rule("A4")
def test_a_run_key_cannot_stand_in_for_another() -> None:
    keys = MemoryRunKeys()
    one, two = (RunSealer(KEY.public_key_text, keys) for _ in range(2))
    row = keys.rows[two.run_id]
    keys.rows[two.run_id] = RunKey(two.run_id, row.key_id, keys.rows[one.run_id].wrapped)
    with pytest.raises(SealedUnreadable):
        RunSealer(KEY.public_key_text, keys, lambda: KEY).open(PURPOSE, two.seal(PURPOSE, b"x"))
    del keys.rows[one.run_id]
    with pytest.raises(SealedUnreadable, match="not stored"):
        RunSealer(KEY.public_key_text, keys, lambda: KEY).open(PURPOSE, one.seal(PURPOSE, b"x"))


@pytest.mark.rule("A4")
def test_a_key_is_replaced_before_it_is_used_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_SEALS", 3)
    monkeypatch.setattr(module, "MAX_OPENED_KEYS", 2)
    keys = MemoryRunKeys()
    made = RunSealer(KEY.public_key_text, keys, lambda: KEY)
    sealed = [made.seal(PURPOSE, bytes([i])) for i in range(10)]
    assert len(keys.rows) == 4
    assert [made.open(PURPOSE, blob) for blob in sealed] == [bytes([i]) for i in range(10)]


@pytest.mark.rule("K1", "A4")
def test_no_repr_and_no_row_shows_a_private_part() -> None:
    keys = MemoryRunKeys()
    made = RunSealer(KEY.public_key_text, keys)
    shown = repr(KEY) + repr(made) + repr(keys.rows)
    assert KEY.secret_text() not in shown
    assert ReadingKey.from_text(KEY.secret_text()).public_key_text == KEY.public_key_text
    assert KEY.public_key_text.startswith("pollconsole-read-1:")


@pytest.mark.rule("A4")
@pytest.mark.parametrize("text", ["", "x", "pollconsole-read-1:", "pollconsole-read-1:AAAA", "pollconsole-read-1:@@"])
def test_a_public_key_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        public_raw(text)
    with pytest.raises(ValueError):
        RunSealer(text, MemoryRunKeys())


@pytest.mark.rule("A4")
def test_a_run_key_that_cannot_be_stored_seals_nothing() -> None:
    class Full(MemoryRunKeys):
        def put(self, key: RunKey) -> None:
            raise OSError

    with pytest.raises(OSError):
        RunSealer(KEY.public_key_text, Full())


@pytest.fixture(params=["memory", pytest.param("real", marks=pytest.mark.server("keyring"))])
def vault(request: pytest.FixtureRequest, home: Path) -> Vault:
    return Vault(home, backend=MemoryBackend()) if request.param == "memory" else Vault(home, limit_s=10)


@pytest.mark.rule("A4")
def test_the_first_start_makes_the_pair_and_keeps_it_in_the_keyring(vault: Vault, home: Path) -> None:
    place = MemoryPublicKey()
    first = ReadingKeys(home, vault).setup(place)
    assert (first.created, first.where, first.notice) == (True, "keyring", None)
    again = ReadingKeys(home, vault)
    second = again.setup(place)
    assert (second.created, second.public_key_text) == (False, first.public_key_text)
    key = again.load(first.public_key_text)
    assert key.public_key_text == first.public_key_text
    assert list(home.iterdir()) == []
    vault.delete(f"reading-key/{key.key_id}")


@pytest.mark.rule("A4", "K2")
def test_without_a_keyring_the_key_lies_in_a_private_file_and_that_is_said(home: Path) -> None:
    vault = Vault(home, backend=Failing(OSError()))
    place = MemoryPublicKey()
    made = ReadingKeys(home, vault).setup(place)
    file = home / "reading.key"
    assert made.created
    assert made.where == str(file)
    assert made.notice is not None
    assert str(file) in made.notice
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = ReadingKeys(home, vault)
    assert again.setup(place).notice == made.notice
    assert again.load(made.public_key_text).public_key_text == made.public_key_text


@pytest.mark.rule("A4")
def test_a_named_key_file_is_the_only_place(home: Path, tmp_path: Path) -> None:
    backend = MemoryBackend()
    file = tmp_path / "far.key"
    made = ReadingKeys(home, Vault(home, backend=backend), file).setup(MemoryPublicKey())
    assert made.where == str(file)
    assert repr(backend) == "MemoryBackend(0 entries)"
    assert ReadingKeys(home, Vault(home, backend=backend), file).load(made.public_key_text)


@pytest.mark.rule("A4")
def test_of_two_first_starts_one_pair_counts(home: Path) -> None:
    backend = MemoryBackend()
    place = MemoryPublicKey()

    class Late(MemoryPublicKey):
        def public_key(self) -> str | None:
            return None

        def set_public_key(self, text: str) -> str:
            return place.set_public_key(text)

    vault = Vault(home, backend=backend)
    first = ReadingKeys(home, vault).setup(place)
    second = ReadingKeys(home, vault).setup(Late())
    assert (second.public_key_text, second.created) == (first.public_key_text, False)
    assert repr(backend) == "MemoryBackend(1 entries)"
    assert ReadingKeys(home, vault).load(first.public_key_text)


@pytest.mark.rule("A4", "K2")
@pytest.mark.parametrize("backend", [MemoryBackend(), Failing(OSError()), Hanging()])
def test_a_reading_key_that_is_nowhere_is_an_error_and_writing_goes_on(backend: MemoryBackend, home: Path) -> None:
    reading = ReadingKeys(home, Vault(home, backend=backend, limit_s=0.05))
    with pytest.raises(CredentialUnavailable):
        reading.load(KEY.public_key_text)
    assert reading.load_or_none(KEY.public_key_text) is None
    made = RunSealer(KEY.public_key_text, MemoryRunKeys(), lambda: reading.load_or_none(KEY.public_key_text))
    assert made.open(PURPOSE, made.seal(PURPOSE, b"x")) == b"x"
    if isinstance(backend, Hanging):
        backend.go_on.set()


@pytest.mark.rule("A4", "K1")
@pytest.mark.skipif(os.name != "posix", reason="modes of files")
def test_a_key_file_that_others_may_read_or_that_is_none_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "k"
    write_key_file(file, KEY.secret_text())
    assert read_key_file(file) == KEY.secret_text()
    with pytest.raises(Refused, match="cannot be written"):
        write_key_file(file, KEY.secret_text())
    file.chmod(0o640)
    with pytest.raises(Refused, match="chmod 600"):
        read_key_file(file)
    file.chmod(0o600)
    link = tmp_path / "link"
    link.symlink_to(file)
    junk = tmp_path / "junk"
    junk.write_text("nothing")
    junk.chmod(0o600)
    for wrong in (link, junk, tmp_path, tmp_path / "none"):
        with pytest.raises(Refused) as caught:
            read_key_file(wrong)
        assert KEY.secret_text() not in str(caught.value)
        assert caught.value.__context__ is None


@pytest.mark.rule("A4")
def test_a_blob_of_an_earlier_process_opens(tmp_path: Path) -> None:
    """The format is stored for years: what another process wrote is read back from bytes alone."""
    code = f"""
from pollcore.adapters.sealer import RunSealer, MemoryRunKeys
keys = MemoryRunKeys()
made = RunSealer({KEY.public_key_text!r}, keys)
row = keys.rows[made.run_id]
print(made.seal("p", b"from afar").hex(), row.run_id.hex(), row.key_id, row.wrapped.hex())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    blob, run_id, key_id, wrapped = done.stdout.split()
    keys = MemoryRunKeys()
    keys.put(RunKey(bytes.fromhex(run_id), key_id, bytes.fromhex(wrapped)))
    assert RunSealer(KEY.public_key_text, keys, lambda: KEY).open("p", bytes.fromhex(blob)) == b"from afar"
