"""Files whose path a user or a folder names: a FIFO, a device or a folder is refused at once, and in words."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

from pollcore.adapters.audit_parts import Cuts
from pollcore.adapters.audit_safe import FileSafe
from pollcore.adapters.audit_verify import Wanted, verify_file
from pollcore.adapters.config import load_config
from pollcore.adapters.contract_files import ContractFiles, read_text
from pollcore.adapters.reading_key import read_key_file
from pollcore.adapters.transport import tls_context
from pollcore.adapters.user_files import TooLarge, open_plain, read_plain
from pollcore.facts import PollconsoleError

LIMIT_S = 20


@pytest.fixture(autouse=True)
def _ends() -> Iterator[None]:
    """Whoever waits for a FIFO's writer is woken by an alarm, and has failed."""

    def woken(*_: object) -> None:
        raise AssertionError("it waits for a writer")

    before = signal.signal(signal.SIGALRM, woken)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def _fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _folder(path: Path) -> None:
    path.mkdir()


ODD = pytest.mark.parametrize("make", [_fifo, _device, _folder])


@pytest.mark.rule("V5")
@ODD
def test_what_is_no_regular_file_is_refused_without_waiting(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "odd")
    for read in (lambda: open_plain(tmp_path / "odd"), lambda: read_plain(tmp_path / "odd", 10)):
        with pytest.raises(OSError) as refused:
            read()
        assert refused.value.strerror in ("it is no regular file", "Is a directory")


@pytest.mark.rule("V5")
def test_a_plain_file_is_read_up_to_its_limit_and_a_link_only_where_links_may_lead_to_it(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("plain")
    assert read_plain(tmp_path / "plain", 10) == read_plain(tmp_path / "link", 10) == b"0123456789"
    with pytest.raises(TooLarge, match="more than 9 bytes"):
        read_plain(tmp_path / "plain", 9)
    with pytest.raises(OSError):
        read_plain(tmp_path / "link", 10, follow=False)
    with pytest.raises(FileNotFoundError):
        read_plain(tmp_path / "nothing", 10)


@pytest.mark.rule("V5")
def test_a_pipe_of_the_shell_is_read_where_pipes_are_as_good_and_only_there() -> None:
    read, write = os.pipe()
    os.write(write, b"through the pipe")
    os.close(write)
    with pytest.raises(OSError, match="no regular file"):
        read_plain(f"/dev/fd/{read}", 100)
    assert read_plain(f"/dev/fd/{read}", 100, pipes=True) == b"through the pipe"
    os.close(read)


READERS: list[tuple[str, str, Callable[[Path], Any]]] = [
    ("contract", "providers/acme.toml", read_text),
    ("contract by name", "providers/acme.toml", lambda path: ContractFiles(path.parent).load("acme")),
    ("settings", "config.toml", lambda path: load_config(path.parent)),
    ("reading key", "reading.key", read_key_file),
    ("audit keys", "audit.keys", lambda path: FileSafe(path).entries()),
    ("evidence", "evidence.jsonl", lambda path: verify_file(path, Wanted())),
    ("archive", "archive.jsonl", lambda path: Cuts(MagicMock(), set(), [path])),
    ("TLS roots", "roots.pem", tls_context),
]


@pytest.mark.rule("V5", "O6")
@ODD
@pytest.mark.parametrize(("file", "read"), [row[1:] for row in READERS], ids=[row[0] for row in READERS])
def test_every_file_of_a_user_is_refused_in_words_when_it_is_none(
    tmp_path: Path, file: str, read: Callable[[Path], Any], make: Callable[[Path], None]
) -> None:
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    make(path)
    with pytest.raises(PollconsoleError) as refused:
        read(path)
    assert path.name in str(refused.value)


@pytest.mark.rule("V5")
@ODD
def test_a_contract_that_is_no_file_spoils_no_other(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "evil.toml")
    rows = {row.name: row for row in ContractFiles(tmp_path).listing()}
    assert "cannot be read" in (rows["evil"].error or "")
    assert rows["example-jobs"].error is None
