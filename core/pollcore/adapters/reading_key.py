"""Where the reading key lives: the keyring, else a file of mode 0600.

Job: make the pair on a new home, find its private part again, say loudly when it lies in a file.
Must not know: what is sealed with it, SQL.
Source: spec A4, K1; design.md, "Records" and "Fixed: places".
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final, Protocol

import msgspec

from pollcore.adapters.keyring_store import Vault
from pollcore.adapters.sealer import ReadingKey, key_id_of, public_raw
from pollcore.adapters.user_files import open_plain
from pollcore.facts import CredentialUnavailable, Refused, StopDetail

FILE_NAME: Final = "reading.key"
MAX_FILE: Final = 4_096
RETRY_MS: Final = 5_000
"""After a failure the keyring is not asked again sooner."""


class PublicKeyPlace(Protocol):
    """Where the home keeps its public key (the store fulfils it): needed to write, no secret."""

    def public_key(self) -> str | None: ...

    def set_public_key(self, text: str) -> str:
        """Keep *text* unless another process was first; return the one that is kept."""
        ...


class MemoryPublicKey:
    """`PublicKeyPlace` in memory, for tests and the demo."""

    def __init__(self) -> None:
        self._text: str | None = None

    def public_key(self) -> str | None:
        return self._text

    def set_public_key(self, text: str) -> str:
        self._text = self._text or text
        return self._text


class ReadingSetup(msgspec.Struct, frozen=True):
    """What a start found or made."""

    public_key_text: str
    created: bool
    where: str
    """`keyring`, or the path of the file; of a pair that existed, where it would be looked for first."""
    notice: str | None = None
    """To be shown and audited: the private part lies in a file."""


class ReadingKeys:
    """Finds the private part of one home's reading key. Blocks up to a keyring call's time limit; any thread."""

    def __init__(self, home: Path, vault: Vault, key_file: Path | None = None) -> None:
        """*key_file*: `[audit] key_file`; named, it is the only place. Else the keyring, else HOME/reading.key."""
        self._vault = vault
        self._named = key_file
        self._home_file = home / FILE_NAME
        self._file = key_file or self._home_file
        self._found: dict[str, ReadingKey] = {}

    def setup(self, place: PublicKeyPlace) -> ReadingSetup:
        """The home's public key, made on the first call ever. Raises Refused: a key file that cannot be used."""
        known = place.public_key()
        if known is not None:
            where = str(self._file) if self._named or self._file.exists() else "keyring"
            notice = None if where == "keyring" else self._notice()
            return ReadingSetup(known, created=False, where=where, notice=notice)
        key = self._from_file() or ReadingKey.generate()
        where = self._keep(key)
        kept = place.set_public_key(key.public_key_text)
        if kept != key.public_key_text and where == "keyring":
            # another process was first: its private part counts, ours was never used
            self._vault.delete(_entry(key.key_id))
        notice = None if where == "keyring" else self._notice()
        return ReadingSetup(kept, created=kept == key.public_key_text, where=where, notice=notice)

    def load(self, public_key_text: str) -> ReadingKey:
        """The private part for *public_key_text*.

        Raises:
            CredentialUnavailable: neither keyring nor file has it (detail as of the keyring). Refused: unusable file.
        """
        wanted = key_id_of(public_raw(public_key_text))
        if wanted not in self._found:
            self._found[wanted] = self._look(wanted)
        return self._found[wanted]

    def load_or_none(self, public_key_text: str) -> ReadingKey | None:
        """As `load`, None where it raises: the shape that `RunSealer` asks for."""
        try:
            return self.load(public_key_text)
        except (CredentialUnavailable, Refused):
            return None

    def _look(self, wanted: str) -> ReadingKey:
        key = self._from_file()
        if key is not None and key.key_id == wanted:
            return key
        if self._named is None:
            (text,) = self._vault.get(_entry(wanted))
            if text is not None:
                return ReadingKey.from_text(text)
        if self._named is not None and self._home_file != self._file and self._home_file.exists():
            raise CredentialUnavailable(
                f"reading key {wanted} is not in {self._file}, which [audit] key_file names: "
                f"move {self._home_file} there, and {self._home_file.name}.audit beside it",
                StopDetail.CREDENTIAL_MISSING,
            )
        raise CredentialUnavailable(
            f"reading key {wanted} is neither in the keyring nor in {self._file}: restore it from where it was kept",
            StopDetail.CREDENTIAL_MISSING,
        )

    def _keep(self, key: ReadingKey) -> str:
        if self._named is None and not self._file.exists():
            try:
                self._vault.set(_entry(key.key_id), key.secret_text())
            except CredentialUnavailable:
                pass
            else:
                return "keyring"
        if not self._file.exists():
            write_key_file(self._file, key.secret_text())
        return str(self._file)

    def _from_file(self) -> ReadingKey | None:
        if not self._file.exists() and not self._file.is_symlink():
            return None
        return ReadingKey.from_text(read_key_file(self._file))

    def _notice(self) -> str:
        return (
            f"the reading key lies in {self._file}, readable by every program of this user: whoever has the file reads"
            " the sealed columns and the audit; use a keyring where there is one"
        )


def copy_reading_key(file: Path, vault: Vault, named: Path | None) -> None:
    """Copy the key in *file* to *named*, or to the keyring, and read it back. Raises Refused, CredentialUnavailable."""
    text = read_key_file(file)
    if named is None:
        entry = _entry(ReadingKey.from_text(text).key_id)
        vault.set(entry, text)
        there = vault.get(entry)[0]
    else:
        if not named.exists():
            write_key_file(named, text)
        there = read_key_file(named)
    if there != text:
        raise Refused("the place that is to keep the reading key holds another one: nothing was moved", code="key_file")


def write_key_file(path: Path, text: str) -> None:
    """Create *path* with mode 0600, whole or not at all, never over a file that exists. Raises Refused."""
    why = None
    try:
        _write_whole(path, text + "\n")
    except OSError as error:
        why = error.strerror or type(error).__name__
    if why is not None:
        raise Refused(f"{path}: the reading key cannot be written: {why}", code="key_file")


def _write_whole(path: Path, text: str) -> None:
    """A process that dies in between leaves a file of another name, never half a key."""
    handle, made = tempfile.mkstemp(prefix=f"{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(made, path)
    finally:
        Path(made).unlink()
    # the name must survive a power cut before the public key is committed
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def read_key_file(path: Path) -> str:
    """The text of a key file: a plain file of ours, mode 0600 at most, small. Raises Refused."""
    why = None
    try:
        with open_plain(path, follow=False) as file:
            found = os.fstat(file.fileno())
            if os.name == "posix" and (found.st_mode & 0o077 or found.st_uid != os.geteuid()):
                why = "others may read it, or it is not yours (chmod 600)"
            else:
                text = file.read(MAX_FILE).decode("ascii", "replace").strip()
    except OSError as error:
        why = error.strerror or type(error).__name__
    if why is None:
        try:
            ReadingKey.from_text(text)
        except ValueError as error:
            why = str(error)
    if why is not None:
        raise Refused(f"{path}: the reading key cannot be used: {why}", code="key_file")
    return text


def _entry(key_id: str) -> str:
    return f"reading-key/{key_id}"
