"""What `doctor` asks: of an open core, or of a home whose store does not exist yet.

Job: facts -> `{"state", "text", "mend"}`, one readable line each. Must not know: output. Nothing is made here: without
a store, settings, keyring and contracts are looked at alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pollconsole import words
from pollconsole.bridge import contrary
from pollconsole.bridge.contracts import Known, contracts_known, providers
from pollconsole.bridge.door import home_path, without_store
from pollconsole.bridge.keeping import key_file, lost_key
from pollconsole.bridge.keys import credentials
from pollconsole.bridge.pausing import pauses
from pollcore.facts import PollconsoleError, Refused, StoreUnusable, iso

if TYPE_CHECKING:
    from pollcore.adapters.config import Config
    from pollcore.assembly import Core

Facts = dict[str, Any]


def store_path(home: Path | None) -> Path:
    """Where the store is, whether it exists or not."""
    from pollcore.adapters.places import find

    return find(None if home is None else str(home)).database


def home_faults(home: Path | None) -> list[str]:
    """Why the folder cannot be a home; empty: it can, or it does not exist yet. Makes and changes nothing."""
    from pollcore.adapters.places import can_be_written, refuse_network

    folder = home_path(home)
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{folder}: cannot be looked at ({error.strerror})"]
    if not stat.S_ISDIR(found.st_mode):
        return [f"{folder}: a symlink or no folder: name the real folder with --home"]
    faults = []
    if found.st_uid != os.getuid() and can_be_written(folder):
        faults.append(f"{folder}: it belongs to another user: name a folder of your own with --home")
    try:
        refuse_network(folder)
    except StoreUnusable as error:
        faults.append(str(error).removeprefix("home "))
    return faults


def settings_faults(config: Config) -> list[str]:
    """What settings name outside themselves and cannot be used: TLS roots, the log's file. Makes nothing."""
    from pollcore.adapters.transport import tls_context

    found = []
    if config.network.ca_file is not None:
        try:
            tls_context(config.network.ca_file)
        except Refused as error:
            found.append(str(config.placed(error)))
    file = config.log.file
    if file is not None and not _takes_lines(file):
        what = f"{file} cannot be written; name a file in a folder that is there, or leave it out"
        found.append(str(config.refused(("log", "file"), what)))
    return found


def _takes_lines(file: Path) -> bool:
    """Whether a log's file can be made, or is a plain one that can be written."""
    return file.is_file() and os.access(file, os.W_OK) if file.exists() else os.access(file.parent, os.W_OK)


def key_file_named(home: Path | None) -> str:
    """`config.toml:2: audit.key_file names the file; `; empty: the settings name none, or cannot be read."""
    try:
        found = without_store(home).config
    except Refused:
        return ""
    if found.audit_key_file is None:
        return ""
    said = str(found.refused(("audit", "key_file"), ""))
    return f"{said.removesuffix(': ')} names the file; "


def stays_open(home: Path | None) -> str | None:
    """Why opening the home leaves its folder's mode as it is; None: it closes it to others. Raises OSError."""
    from pollcore.adapters.places import can_be_written, is_ours

    folder = home_path(home)
    if not can_be_written(folder):
        return "a home that is only read stays so"
    return None if is_ours(folder) else "it holds files of others as well, so it stays so"


async def doctor_facts(core: Core) -> Facts:
    """What an open core can tell `doctor`; each `{"state", "text", "mend"}` is judged already."""
    facts = dict(await core.facts())
    facts.pop("boot_id", None)
    health = facts.pop("store", None)
    if isinstance(health, dict):
        facts = _store(health) | facts
    if "public_key" in facts:
        left = _keys_left(core) if facts["public_key"] is None else None
        facts["public_key"] = _emptied(left) if left else _public_key(facts["public_key"], await lost_key(core))
    for number, line in enumerate(await contrary.told(core, limit=contrary.LOOKED_AT), 1):
        facts[f"records {number}"] = {"state": "wrong", "text": line, "mend": contrary.MEND}
    for number, one in enumerate(await pauses(core), 1):
        facts[f"pause {number}"] = {"state": "note", "text": f"{one.text}: nothing is sent to it; only time ends it"}
    named = {info["name"] for info in await credentials(core)}
    return facts | await _machine(core, named, await contracts_known(core))


async def facts_without_a_store(home: Path | None) -> Facts:
    """The same without opening anything: what settings, keyring and contracts tell. Raises Refused: the settings."""
    core = without_store(home)
    return await _lost_store(core) | await _machine(core, ())


async def _lost_store(core: Core) -> Facts:
    """`store`, where the anchor, or keys that lie in the home, say that there was one; else nothing."""
    from pollcore.adapters.audit_facts import BACK, lost_chain

    lost = await lost_chain(core.audit)
    keys = _keys_left(core)
    if lost is None and keys is None:
        return {}
    why = lost or f"{keys} opens what was sealed in it"
    return {"store": {"state": "wrong", "text": f"{core.home.database} is gone: {why}", "mend": BACK}}


def _keys_left(core: Core) -> Path | None:
    """The home's own file of keys, which a store made; a file that the settings name may have been there before it."""
    from pollcore.adapters.audit_places import beside

    if core.config.audit_key_file is not None:
        return None
    key = key_file(core)
    return next((path for path in (key, beside(key)) if path.exists()), None)


async def _machine(core: Core, named: Iterable[str], known: Known | None = None) -> Facts:
    """Keyring, contracts and clock; none of them needs the store. *named*: credentials that are stored. *known*: what
    operators saw of contracts.
    """
    import asyncio

    facts: Facts = {}
    needed = sorted({*named, *(one.credential for one in core.config.providers.values() if one.credential)})
    in_use = f"credentials in use: {', '.join(needed) or 'none'}"
    try:
        backend = await asyncio.to_thread(core.vault.describe)
        facts["keyring"] = {"state": "ok", "text": f"{backend}; {in_use}"}
    except PollconsoleError as error:
        text = str(error)
        mend = "" if needed else "needed only for providers that want a credential; the audit's keys lie in files here"
        wrong = needed or core.config.keyring_backend is not None
        facts["keyring"] = {"state": "wrong" if wrong else "note", "text": f"{text}; {in_use}", "mend": mend}
    facts |= _contracts(core, known)
    facts["clock"] = {"state": "ok", "text": f"{iso(core.clock.now().wall)} by this machine's clock"}
    return facts


def _contracts(core: Core, known: Known | None) -> Facts:
    views = providers(core, known)
    usable = [view for view in views if not view["error"]]
    configured = sum(view["source"] == "config.toml" for view in usable)
    text = f"{_count(len(usable) - configured, 'contract')} and {_count(configured, 'configured provider')} can be used"
    facts: Facts = {"contracts": {"state": "ok", "text": text}}
    for view in views:
        if view["error"]:
            facts[f"contract {view['name']}"] = {"state": "wrong", "text": view["error"]}
        elif doubts := _doubts(view):
            facts[f"contract {view['name']}"] = {"state": "note", "text": "; ".join(doubts)}
    return facts


def _doubts(view: Mapping[str, Any]) -> list[str]:
    """What is worth knowing of a contract that can be used (G5)."""
    doubts = [f"{view['source']} is used, not the shipped one"] if view["shadows"] else []
    marks = view.get("marks")
    if marks is not None and marks["seen"] is False and not marks["shipped"]:
        doubts.append("new or changed, no operator has looked at it in the console")
    return doubts


def _count(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _emptied(key: Path) -> Facts:
    from pollcore.adapters.audit_facts import BACK

    text = f"the store knows none, and {key} is the key of one that was here: the store was emptied or replaced"
    return {"state": "wrong", "text": text, "mend": BACK}


def _public_key(text: str | None, lost: tuple[str, bool] | None) -> Facts:
    if text is None:
        return {"state": "ok", "text": "none yet: the next 'pollconsole', 'run' or 'submit' makes the home's key pair"}
    if lost is not None:
        why, gone = lost
        return {
            "state": "wrong" if gone else "note",
            "text": f"{text}: {why}. What is sealed cannot be opened: links of results, status addresses, idempotency "
            "keys, stored answers; what is handed over now is sealed for the same key",
            "mend": "put the key back from where it was kept with the backup; without it these values are lost"
            if gone
            else "unlock the keyring",
        }
    return {"state": "ok", "text": f"{text} (public: it opens nothing; keep a copy elsewhere)"}


def _store(health: Mapping[str, Any]) -> Facts:
    """The store's file, its SQLite, and what is doubtful about the folder; a line each."""
    mode, free = str(health.get("file_mode") or "0"), health.get("free_bytes")
    path = str(health.get("path"))
    room = f", {words.size(free)} free on its disk" if isinstance(free, int) else ""
    text = (
        f"{path}, {words.size(int(health.get('file_bytes') or 0))}, mode {int(mode, 8):04o}, "
        f"schema {health.get('schema')}{room}"
    )
    facts: Facts = {"store": {"state": "ok", "text": text}, "sqlite": _sqlite(health)}
    needed = int(health.get("free_needed") or 0)
    if isinstance(free, int) and free < needed:
        facts["store"] = {
            "state": "wrong",
            "text": f"{text}: the disk is full, nothing is sent while it is",
            "mend": f"free space on it, {words.size(needed)} at least",
        }
    elif health.get("read_only"):
        facts["store"] = {
            "state": "note",
            "text": f"{text}; it cannot be written, it is only read: nothing can be sent or handed over from here",
            "mend": "to poll, name a home on a file system that this user can write",
        }
    doubtful = [line for line in health.get("warnings", ()) if "WAL-reset" not in line]
    for number, line in enumerate(doubtful, 1):
        facts[f"store {number}"] = {"state": "note", "text": line}
    return facts


def _sqlite(health: Mapping[str, Any]) -> Facts:
    text = (
        f"SQLite {health.get('sqlite_version')} ({health.get('library')}), journal mode {health.get('journal_mode')}, "
        f"synchronous {health.get('synchronous')}"
    )
    if health.get("wal_reset_bug"):
        return {
            "state": "note",
            "text": f"{text}; it can damage a WAL that two processes write: the slower rollback journal is used",
            "mend": "use a Python whose SQLite is 3.51.3 or newer, or install pysqlite3",
        }
    return {"state": "ok", "text": text}
