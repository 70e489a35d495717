"""One home and what real processes do on it: hand over, poll, look, decide nothing, crash; everything that comes out.

Job: run the program, keep every byte that it wrote anywhere. Must not know: what is a secret among it.
"""

from __future__ import annotations

import contextlib
import html
import os
import re
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.console.ptylib import Terminal
from tests.trust import file_keyring, program

ROOT: Final = Path(__file__).parents[2]
PROGRAM: Final = Path(program.__file__)
LIMIT_S: Final = 120

CONTRACT: Final = """
schema = 1
name = "{name}"
tested_live = "the provider of these tests"
origins = ["{url}"]
{params}
[credential]
{credential}
[status]
url = "{url}/v1/jobs/{{job_id}}"
observation = "read_only"
evidence = "the tests of this project"
total = "5s"
[state]
value = "body.status"
[states]
waiting = ["queued", "running"]
succeeded = ["done"]
failed = ["failed"]
[[success.requires]]
path = "body.result.url"
format = "url"
[success]
permits = "fetch_result"
[error]
code = "body.error.code"
message = "body.error.message"
[identity]
job_id = "body.id"
[progress]
value = "body.progress"
[request_id]
header = "x-request-id"
[[hints]]
name = "next_check_at"
path = "body.progress"
unit = "iso"
cap = "1h"
[result]
url = "{{result.url}}"
[schedule]
base_delay = "100ms"
max_delay = "200ms"
min_delay = "50ms"
[limits]
deadline_basis = "decide-by: the hour"
extend = [{{ minutes = 15, checks = 4 }}]
[limits.default]
deadline = "40m"
max_status_requests = 12
max_transport_failures = 1
max_rate_limited = 3
[limits.max]
deadline = "8h"
max_status_requests = 200
max_transport_failures = 50
max_rate_limited = 20
"""


class Life:
    """*places*: name of a place -> every byte that was seen there."""

    def __init__(self, folder: Path, secrets: Iterable[str], control: bool = False) -> None:
        """*secrets*: what the failing code of `program` holds. *control*: they are no secrets."""
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True, mode=0o700)
        self.outside = folder / "outside"
        self.outside.mkdir()
        self.pictures = folder / "pictures"
        self.pictures.mkdir()
        self.work = folder / "work"
        """The folder that the processes stand in: a core file would lie here."""
        self.work.mkdir()
        self._secrets = self.outside / "secrets.txt"
        self._secrets.write_text("\n".join(secrets))
        self._control = "1" if control else ""
        self.keyring = self.outside / "keyring.json"
        self.places: dict[str, bytearray] = {}

    # --- files --------------------------------------------------------------------------------------------------------

    def write_contracts(self, url: str, kinds: Mapping[str, tuple[str, str]]) -> None:
        """*kinds*: name -> (`[credential]` lines, lines before the tables)."""
        folder = self.home / "providers"
        folder.mkdir(exist_ok=True)
        for name, (credential, params) in kinds.items():
            text = CONTRACT.format(name=name, url=url, credential=credential, params=params)
            (folder / f"{name}.toml").write_text(text)
        (self.home / "config.toml").write_text('[keyring]\nbackend = "tests.trust.file_keyring.Keyring"\n')

    def lock_keyring(self, locked: bool) -> None:
        mark = self.keyring.with_name(self.keyring.name + ".locked")
        mark.touch() if locked else mark.unlink(missing_ok=True)

    # --- processes ----------------------------------------------------------------------------------------------------

    def environment(self, how: str = "plain", developer: bool = True) -> dict[str, str]:
        """Nothing of a secret: the file that holds them is named."""
        dropped = ("TEXTUAL", "DBUS", "TMUX", "PYTHON")
        inherited = {name: text for name, text in os.environ.items() if not name.startswith(dropped)}
        return {
            **inherited,
            "PYTHONPATH": os.pathsep.join((str(ROOT / "core"), str(ROOT / "console"), str(ROOT))),
            "PYTHONDEVMODE": "1" if developer else "",
            "TERM": "xterm-256color",
            "POLLCONSOLE_HOME": str(self.home),
            file_keyring.VARIABLE: str(self.keyring),
            program.HOW: how,
            program.SECRETS: str(self._secrets),
            program.PICTURES: str(self.pictures),
            program.CONTROL: self._control,
        }

    def call(
        self,
        place: str,
        *argv: str,
        stdin: str = "",
        how: str = "plain",
        codes: Sequence[int] = (0,),
        developer: bool = False,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one command; its two streams belong to *place*. *developer*: Python's developer mode, asyncio's debug."""
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *argv],
            input=stdin.encode(),
            capture_output=True,
            timeout=LIMIT_S,
            cwd=self.work,
            env=self.environment(how, developer),
        )
        self.keep(place, done.stdout + done.stderr)
        assert done.returncode in codes, (argv, done.returncode, done.stderr[-3000:], done.stdout[-1000:])
        return done

    def screen(self, how: str = "picture") -> Terminal:
        """The console on a terminal."""
        here = Path.cwd()
        os.chdir(self.work)
        try:
            argv = [sys.executable, str(PROGRAM)]
            return Terminal(argv, env=self.environment(how), columns=200, rows=60)
        finally:
            os.chdir(here)

    # --- what came out ------------------------------------------------------------------------------------------------

    def keep(self, place: str, data: bytes) -> None:
        """Add *data* to what was seen in *place*."""
        self.places.setdefault(place, bytearray()).extend(data + b"\n")

    def keep_files(self) -> None:
        """Every file under the home, by what it is, the pictures, and the folder that the processes stood in."""
        for path in sorted(self.home.rglob("*")):
            if path.is_file():
                self.keep(_place_of(path.relative_to(self.home)), path.name.encode() + b"\n" + read(path))
        # each picture has a number of its own in every name
        texts = (re.sub(r"terminal-\d+", "terminal", path.read_text()) for path in self.pictures.iterdir())
        lines = {line for text in texts for line in re.split(r"\n|(?<=>)", text)}
        # a picture spells spaces and quotes as entities
        self.keep("svg", "\n".join([*lines, *(html.unescape(line) for line in lines)]).encode())
        for path in sorted(self.work.rglob("*")):
            self.keep("working folder", path.name.encode() + (path.read_bytes() if path.is_file() else b""))

    @contextlib.contextmanager
    def wal(self) -> Iterator[None]:
        """Keep what the write-ahead log holds while processes live; the last one to close it takes it away."""
        copies = self.outside / "wal"
        copies.mkdir(exist_ok=True)
        code = f"""
import pathlib, sys, time
wal, seen = pathlib.Path({str(self.home / "pollconsole.db-wal")!r}), set()
pathlib.Path({str(copies / "begun")!r}).touch()
while not pathlib.Path({str(copies / "end")!r}).exists():
    time.sleep(0.05)
    try:
        data = wal.read_bytes()
    except OSError:
        continue
    for at in range(32, len(data), 4096 + 24):
        seen.add(data[at:at + 4096 + 24])
pathlib.Path({str(copies / "pages")!r}).write_bytes(b"".join(seen))
"""
        copier = subprocess.Popen([sys.executable, "-c", code])
        try:
            end = time.monotonic() + LIMIT_S
            while not (copies / "begun").exists():
                assert time.monotonic() < end, "the copier does not begin"
                time.sleep(0.02)
            yield
        finally:
            (copies / "end").touch()
            copier.wait(LIMIT_S)
            (copies / "end").unlink()
            self.keep("wal", (copies / "pages").read_bytes())

    def keep_rows(self) -> None:
        """Each value of each row as SQLite gives it: a page may cut a long one in the file."""
        with sqlite3.connect(f"file:{self.home / 'pollconsole.db'}?mode=ro", uri=True) as conn:
            for (table,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                for row in conn.execute(f'SELECT * FROM "{table}"'):
                    told = [each if isinstance(each, bytes) else str(each).encode() for each in row]
                    self.keep("database rows", b"\n".join(told))
        conn.close()


def _place_of(path: Path) -> str:
    name = path.name
    if name.startswith("pollconsole.db"):
        return {"pollconsole.db": "database", "pollconsole.db-wal": "wal", "pollconsole.db-shm": "shm"}.get(name, name)
    if path.parts[0] in ("crashes", "exports", "archives"):
        return path.parts[0]
    return name


def read(path: Path) -> bytes:
    """A file's bytes; a store's by another process, because one that closes its file by hand drops SQLite's locks."""
    if not path.name.startswith("pollconsole.db"):
        return path.read_bytes()
    return subprocess.run(["cat", str(path)], capture_output=True, timeout=LIMIT_S, check=True).stdout
