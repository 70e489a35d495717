"""The settings in force and where each comes from: flag, environment, file of the home, or what holds without any.

Job: what an open core was started with, one plain record; what its files say now, where that is another thing. Must not
know: widgets, the screen's own settings (theme, keys). No secret is a setting, and none is read here.
Source: design, "places"; spec K1, K2, B1, H7.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from pollconsole import words
from pollcore.facts import PollconsoleError

if TYPE_CHECKING:
    from pollcore.adapters.config import Config
    from pollcore.assembly import Core

FILE: Final = "config.toml"
DEFAULT: Final = "default"
FLAG: Final = "--home"
IN_HOME: Final = "in the home"


class Setting(msgspec.Struct, frozen=True):
    """One line: group, name, value as text, where it comes from."""

    group: str
    name: str
    value: str
    source: str


class Settings(msgspec.Struct, frozen=True):
    """All of them, in order, and what is wrong with the files behind them."""

    settings: tuple[Setting, ...]
    problems: tuple[str, ...]


def home_source(home: Path | None) -> str:
    """Who named the home: `--home`, the variable's name, or `default`."""
    from pollcore.adapters.places import VARIABLE

    return FLAG if home is not None else VARIABLE if os.environ.get(VARIABLE) else DEFAULT


async def settings(core: Core, named_by: str, *, exact: bool = False) -> Settings:
    """Read them; the keyring is asked for its name alone. Raises StoreUnusable.

    Args:
        named_by: as `home_source`.
        exact: sizes in bytes.
    """
    health = await core.store.health()
    found = [*_home(core, named_by), *_store(health, exact)]
    problems = [f"store: {text}" for text in health.warnings]
    found.append(await _keyring(core, problems))
    found += _limits(core.config)
    found += _rest(core)
    problems += await asyncio.to_thread(_file_problems, core)
    return Settings(tuple(found), tuple(problems))


def _home(core: Core, named_by: str) -> Iterator[Setting]:
    places = core.home
    yield Setting("home", "home", str(places.home), named_by)
    for name, path in (("settings", places.config), ("keys", places.keys), ("screen memory", places.ui)):
        there = path.exists()
        yield Setting("home", name, str(path), "read" if there else "not there: defaults hold")
    for name, folder in (("contracts", places.providers), ("themes", places.themes)):
        count = sum(1 for _ in folder.glob("*.toml")) if folder.is_dir() else 0
        yield Setting("home", name, str(folder), f"{count} file{'s' * (count != 1)}")


def _store(health: Any, exact: bool) -> Iterator[Setting]:
    def size(count: int) -> str:
        return f"{count:,} bytes" if exact else words.size(count)

    room = f", {size(health.free_bytes)} free" if health.free_bytes is not None else ""
    yield Setting("store", "file", f"{health.path}, {size(health.file_bytes)}{room}", IN_HOME)
    yield Setting("store", "SQLite", f"{health.sqlite_version}, {health.library}", "installed")
    why = "this SQLite has the WAL-reset fault" if health.wal_reset_bug else "by this SQLite"
    yield Setting("store", "journal mode", health.journal_mode, why)
    yield Setting("store", "synchronous", health.synchronous, "fixed")
    yield Setting("store", "schema", str(health.schema), "this version")
    if health.read_only:
        yield Setting("store", "writing", "not possible: only read", "file system or mode")


async def _keyring(core: Core, problems: list[str]) -> Setting:
    named = core.config.keyring_backend
    try:
        backend = await asyncio.to_thread(core.vault.describe)
    except PollconsoleError as error:
        problems.append(f"keyring: {error}")
        backend = "not usable now"
    return Setting("keyring", "backend", backend, f"{FILE} [keyring]" if named else "found here")


def _limits(config: Config) -> Iterator[Setting]:
    """B1: ceilings above what a contract allows, caps per caller and account."""
    ceilings = config.ceilings
    for name in msgspec.structs.fields(ceilings):
        value = getattr(ceilings, name.name)
        text = words.span(value) if name.name == "deadline" else f"{value:,}" if value is not None else ""
        yield _limit("ceilings", name.name, text if value is not None else None, "none: each contract's own hold")
    for name in msgspec.structs.fields(config.policy):
        value = getattr(config.policy, name.name)
        yield _limit("policy", name.name, None if value is None else f"{value:,}", "no cap")


def _limit(table: str, name: str, value: str | None, without: str) -> Setting:
    source = DEFAULT if value is None else f"{FILE} [{table}]"
    return Setting(table, name.replace("_", " "), value if value is not None else without, source)


def _rest(core: Core) -> Iterator[Setting]:
    config = core.config
    operator = core.actions.operator()
    named = f"{FILE} [operator]" if config.operator_name else "operating system"
    yield Setting("operator", "name", f"{operator.user}, not verified", named)
    key_file = config.audit_key_file
    yield Setting(
        "audit", "keys", str(key_file or core.audit.state.keys_in), f"{FILE} [audit]" if key_file else DEFAULT
    )
    for name, value in (("proxy", config.network.proxy), ("ca file", config.network.ca_file)):
        source = f"{FILE} [network]" if value else DEFAULT
        without = "none: connections go out directly" if name == "proxy" else "the system's roots"
        yield Setting("network", name, str(value or without), source)
    yield from _outside(config)
    for name, one in sorted(config.providers.items()):
        caps = [f"{one.concurrency} at once"] if one.concurrency else []
        caps += [f"{one.per_minute} a minute"] if one.per_minute else []
        plain = ["plain http allowed"] if one.allow_http else []
        text = ", ".join([f"contract {one.contract}", *([one.base_url] if one.base_url else []), *caps, *plain])
        yield Setting("providers", name, text, f"{FILE} [providers.{name}]")


def _outside(config: Config) -> Iterator[Setting]:
    """Notices, metrics, log and what the terminal is told beside the screen."""
    rules = config.notices
    told = ", ".join(rules.events)
    if told:
        told += f"; to {', '.join(rules.to) or 'all addresses'}; {rules.per_hour} an hour at most"
        quiet = rules.quiet
        if quiet is not None:
            hours = "-".join(f"{minute // 60:02d}:{minute % 60:02d}" for minute in quiet)
            told += f"; quiet {hours} {rules.time_zone}"
    yield Setting("notices", "events", told or "none: nothing is told outside", _from("notices", bool(told)))
    listen = config.metrics
    where = f"{listen[0]} port {listen[1]}" if listen is not None else "nowhere"
    yield Setting("metrics", "listen", where, _from("metrics", listen is not None))
    log = config.log.file
    yield Setting("log", "file", str(log) if log else "none", _from("log", log is not None))
    for name, usual in (("bell", False), ("title", True)):
        value = getattr(config.screen, name)
        yield Setting("screen", name, "yes" if value else "no", _from("screen", value is not usual))


def _from(table: str, is_set: bool) -> str:
    return f"{FILE} [{table}]" if is_set else DEFAULT


def _file_problems(core: Core) -> list[str]:
    """What the file says now that is not in force, and contracts that cannot be used."""
    from pollcore.adapters.config import load_config

    problems = []
    try:
        if load_config(core.home.home) != core.config:
            problems.append(f"{FILE}: changed since this console began; it takes effect at the next start")
    except PollconsoleError as error:
        problems.append(f"{words.sentence(str(error))}; what was read at the start is in force")
    problems += [
        f"contract {file.name}: {words.sentence(file.error)}" for file in core.contracts.listing() if file.error
    ]
    return problems
