"""The evidence file: verified by our verifier and by a stranger's; every cut, every flipped byte, every extra told."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pollcore.adapters.audit_verify import Wanted, verify_file
from pollcore.chain import evidence
from pollcore.chain.findings import Report, Verdict
from pollcore.chain.notes import key_text, parse_head, parse_key, parse_note
from pollcore.facts import Refused
from tests.audit.logs import Log

V = Verdict
LIMIT_S = 60


def made() -> Log:
    """Two epochs, 12 links, the last under a checkpoint."""
    log = Log()
    log.add(4)
    log.rotate()
    log.add(4)
    log.note()
    return log


def written(log: Log, path: Path) -> Path:
    first = evidence.First(evidence.FORMAT, log.log_id.hex(), key_text(log.log_id, log.public))
    path.write_bytes(b"".join(evidence.lines(first, log.rows, log.notes)))
    return path


def proved(path: Path, log: Log) -> Report:
    return verify_file(path, Wanted(key=(log.log_id, log.public)))


def stranger(path: Path, log: Log) -> tuple[int, str]:
    return stranger_says(path, key_text(log.log_id, log.public))


def stranger_says(path: Path, key: str | None) -> tuple[int, str]:
    script = Path(__file__).with_name("stranger.py")
    command = [sys.executable, "-I", str(script), str(path), str(key)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.rule("A4")
def test_a_stranger_with_the_file_and_the_key_alone_proves_it(tmp_path: Path) -> None:
    log = made()
    path = written(log, tmp_path / "evidence.jsonl")
    assert proved(path, log).verdict is V.INTACT
    code, told = stranger(path, log)
    assert code == 0, told
    assert told.startswith("12 links, signed up to 12, epoch 1, key ")
    raw = path.read_bytes()
    at = raw.index(b'"link":"', len(raw) // 2) + 200
    path.write_bytes(raw[:at] + (b"A" if raw[at : at + 1] != b"A" else b"B") + raw[at + 1 :])
    assert stranger(path, log)[0] == 20
    assert proved(path, log).verdict is V.ALTERED


@pytest.mark.rule("A4", "A3")
def test_every_flipped_byte_of_the_file_is_told(tmp_path: Path) -> None:
    log = Log()
    log.add(1)
    log.note()
    path = written(log, tmp_path / "evidence.jsonl")
    raw = path.read_bytes()
    for at in range(len(raw)):
        path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
        try:
            code = proved(path, log).verdict.exit_code
        except Refused:
            code = 2  # the head line itself
        assert code not in (0, 25), (at, raw[at : at + 20])


@pytest.mark.rule("A4", "A3")
def test_a_file_cut_at_any_byte_is_torn_or_truncated(tmp_path: Path) -> None:
    log = Log()
    log.add(2)
    log.note()
    path = written(log, tmp_path / "evidence.jsonl")
    raw = path.read_bytes()
    start = raw.index(b"\n") + 1
    for size in range(start, len(raw)):
        path.write_bytes(raw[:size])
        verdict = proved(path, log).verdict
        at_line = raw[size - 1 : size] == b"\n"
        assert verdict in ((V.TRUNCATED, V.MISSING) if at_line else (V.TORN, V.MISSING)), (size, verdict)


@pytest.mark.rule("A4", "A3")
def test_what_is_put_in_doubled_or_behind_the_end_is_told(tmp_path: Path) -> None:
    log = made()
    path = written(log, tmp_path / "evidence.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)

    def verdict(new: list[bytes]) -> Verdict:
        path.write_bytes(b"".join(new))
        return proved(path, log).verdict

    assert verdict([*lines, b"\n"]) is V.ALTERED
    assert verdict([*lines, lines[3]]) is V.ALTERED
    assert verdict([*lines[:3], b"\n", *lines[3:]]) is V.ALTERED
    assert verdict([*lines[:3], lines[3].replace(b":", b": ", 1), *lines[4:]]) is V.ALTERED
    assert verdict([*lines[:3], lines[3].replace(b'{"seq":', b'{"seq":9,"seq":', 1), *lines[4:]]) is V.ALTERED
    for at in range(1, len(lines) - 1):
        assert verdict([*lines[:at], *lines[at + 1 :]]).exit_code >= 20, at
        assert verdict([*lines[:at], lines[at], *lines[at:]]).exit_code >= 20, at
    with pytest.raises(Refused, match="not an evidence file"):
        verdict([b"hello\n"])


@pytest.mark.rule("A4")
def test_heads_and_keys_are_read_in_the_forms_that_people_keep(tmp_path: Path) -> None:
    log = made()
    seq, text = log.notes[-1]
    head = log.rows[-1][2]
    assert parse_head(text) == (log.log_id, seq, head)
    assert parse_head(text.replace("\n", "\r\n")) == (log.log_id, seq, head)
    assert parse_head(f"{seq}:{head.hex()}") == (None, seq, head)
    assert parse_key(key_text(log.log_id, log.public)) == (log.log_id, log.public)
    for wrong in ("", "12", "12:", f"0:{head.hex()}", f"{seq}:{head.hex()[:-1]}", text[:-5], text + "x\n"):
        with pytest.raises(ValueError):
            parse_head(wrong)
    with pytest.raises(ValueError):
        parse_key(key_text(log.log_id, log.public)[:-2] + "AA")
    with pytest.raises(ValueError):
        parse_note(text.replace("epoch 1", "epoch 01"))
