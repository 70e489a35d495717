"""`config.toml` -> frozen settings, or an error that names file, line, key and the nearest known key.

Job: read the one configuration file of a home and check every value in it. Must not know: contracts (only their names),
the store, secrets (a value that looks like one is refused, K1), who uses the settings.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pollcore.adapters.config_checks import (
    CAPS,
    CEILINGS,
    INSTANCE,
    NETWORK,
    POLICY,
    Checks,
    as_backend,
    as_text,
    as_url,
    is_loopback,
    parse_span,
)
from pollcore.adapters.config_outside import (
    LOG,
    METRICS,
    NOTICES,
    SCREEN,
    LogSettings,
    ScreenSettings,
    parse_listen,
    rules,
)
from pollcore.adapters.user_files import TooLarge, read_plain
from pollcore.facts import Limits, Refused
from pollcore.notices import Rules

__all__ = [
    "Config",
    "Instance",
    "Network",
    "UsePolicy",
    "load_config",
    "parse_config",
    "parse_listen",
    "parse_span",
]

FILE_NAME: Final = "config.toml"
MAX_FILE_BYTES: Final = 1 << 20
MAX_PROVIDERS: Final = 1_000
TABLES: Final = (
    *("providers", "ceilings", "policy", "audit", "operator", "keyring", "network"),
    *("notices", "metrics", "log", "screen"),
)

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_HEADER_LINE = re.compile(r"\s*\[\[?([^\[\]]+)\]")
_KEY_LINE = re.compile(rf"\s*({_KEY}(?:\s*\.\s*{_KEY})*)\s*=")


class Instance(msgspec.Struct, frozen=True, kw_only=True):
    """One configured provider: a contract, and where and as whom it is asked. *per_minute*: requests (T8)."""

    contract: str
    base_url: str | None = None
    credential: str | None = None
    account: str | None = None
    concurrency: int | None = None
    per_minute: int | None = None
    allow_http: bool = False
    urls: Mapping[str, str] = {}
    """Further base URLs by the names that the contract gives them."""


class UsePolicy(msgspec.Struct, frozen=True):
    """B1: caps per caller and account; None: no cap."""

    open_operations: int | None = None
    requests_per_hour: int | None = None


class Network(msgspec.Struct, frozen=True):
    """H7: proxies and TLS roots come from here only, never from the environment."""

    ca_file: Path | None = None
    proxy: str | None = None


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """All settings of one home; what the file leaves out is None or empty."""

    providers: Mapping[str, Instance] = {}
    ceilings: Limits = Limits()
    policy: UsePolicy = UsePolicy()
    audit_key_file: Path | None = None
    operator_name: str | None = None
    keyring_backend: str | None = None
    """Dotted name of a backend class that the operator allows although it is not on the allow-list (K2)."""
    network: Network = Network()
    notices: Rules = Rules()
    metrics: tuple[str, int] | None = None
    """Where health and metrics are told, a loopback address alone; None: nowhere."""
    log: LogSettings = LogSettings()
    screen: ScreenSettings = ScreenSettings()
    text: str = ""
    """The file as it was read: what turns out to be wrong later is told with its line, too."""

    def refused(self, path: tuple[str, ...], what: str, *, code: str = "config") -> Refused:
        """The error for the key or table at *path*: file, line, key, *what*."""
        return _refused(self.text, path, what, code)

    def placed(self, error: Refused) -> Refused:
        """*error* of code `config` (its key among the details) with the line that it did not know."""
        key = error.details.get("key")
        if error.code != "config" or not isinstance(key, str):
            return error
        return self.refused(tuple(key.split(".")), str(error).removeprefix(f"{FILE_NAME}: {key}: "))


def load_config(home: Path) -> Config:
    """Read `config.toml` of *home*; a missing file is the empty configuration.

    Raises:
        Refused: code `config`; the message starts with `config.toml:LINE:`.
    """
    path = home / FILE_NAME
    try:
        raw = read_plain(path, MAX_FILE_BYTES)
    except FileNotFoundError:
        return Config()
    except TooLarge:
        what = f"more than {MAX_FILE_BYTES} bytes; settings are a few pages"
        raise Refused(f"{FILE_NAME}: {what}", code="config") from None
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise Refused(f"{path}: cannot be read: {why}; make it a file that this user may read", code="config") from None
    try:
        return parse_config(raw.decode("utf-8"), home)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"not UTF-8 at byte {error.start}; save it as UTF-8"
        raise Refused(f"{FILE_NAME}:{line}: {what}", code="config", line=line) from None


def parse_config(text: str, home: Path = Path()) -> Config:
    """Read the TOML *text*; relative paths in it count from *home*. Raises Refused as `load_config`."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        said = str(error) if isinstance(error, tomllib.TOMLDecodeError) else "numbers or tables beyond all measure"
        found = re.search(r"\(at line ([0-9]+)", said)
        place = f"{FILE_NAME}:{found[1]}" if found else FILE_NAME
        raise Refused(f"{place}: not TOML: {said}", code="config", line=int(found[1]) if found else None) from None
    reader = _Reader(text, home)
    reader.known(data, (), TABLES)
    return Config(
        providers=reader.providers(data),
        ceilings=Limits(**reader.table(data, ("ceilings",), CEILINGS)),
        policy=UsePolicy(**reader.table(data, ("policy",), POLICY)),
        audit_key_file=reader.table(data, ("audit",), {"key_file": as_text}, paths=("key_file",)).get("key_file"),
        operator_name=reader.table(data, ("operator",), {"name": as_text}).get("name"),
        keyring_backend=reader.table(data, ("keyring",), {"backend": as_backend}).get("backend"),
        network=Network(**reader.table(data, ("network",), NETWORK, paths=("ca_file",))),
        notices=rules(reader.table(data, ("notices",), NOTICES)),
        metrics=reader.table(data, ("metrics",), METRICS).get("listen"),
        log=LogSettings(**reader.table(data, ("log",), LOG, paths=("file",))),
        screen=ScreenSettings(**reader.table(data, ("screen",), SCREEN)),
        text=text,
    )


class _Reader:
    """Checks tables key by key and knows where in the text a key stands."""

    def __init__(self, text: str, home: Path) -> None:
        self._text = text
        self._home = home

    def table(
        self, data: Mapping[str, Any], path: tuple[str, ...], checks: Checks, paths: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """The checked values of the table at *path*, without absent keys."""
        table: Any = data
        for index, part in enumerate(path):
            table = table.get(part, {})
            if not isinstance(table, dict):
                raise self.error(path[: index + 1], "must be a table")
        self.known(table, path, tuple(checks))
        values = {}
        for key, value in table.items():
            try:
                values[key] = checks[key](value)
            except ValueError as error:
                raise self.error((*path, key), str(error)) from None
            if key in paths:
                values[key] = self._home / Path(values[key]).expanduser()
        return values

    def providers(self, data: Mapping[str, Any]) -> dict[str, Instance]:
        """`[providers.NAME]` tables. *caps* is `{ concurrency, per_minute }`; both may also stand beside it."""
        table = data.get("providers", {})
        if not isinstance(table, dict):
            raise self.error(("providers",), "must hold tables, [providers.NAME]")
        if len(table) > MAX_PROVIDERS:
            raise self.error(("providers",), f"more than {MAX_PROVIDERS} providers")
        found = {}
        for name in table:
            path = ("providers", name)
            if not _NAME.fullmatch(name):
                raise self.error(path, "a provider's name is 1-64 letters, digits, '.', '_' and '-'")
            values = self.table(data, path, INSTANCE)
            caps = self.table(data, (*path, "caps"), CAPS)
            values.pop("caps", None)
            values["urls"] = self._urls(data, (*path, "urls"))
            for key in caps:
                if key in values:
                    raise self.error((*path, key), "also stands in caps; keep one of them")
            if "contract" not in values:
                raise self.error(path, 'contract is missing: name a contract, contract = "..."')
            instance = Instance(**values, **caps)
            self._no_plain_http(path, instance)
            found[name] = instance
        return found

    def _urls(self, data: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, str]:
        table: Any = data
        for part in path[:-1]:
            table = table[part]
        checks = dict.fromkeys(table.get("urls", {}), as_url)
        return self.table(data, path, checks)

    def _no_plain_http(self, path: tuple[str, ...], instance: Instance) -> None:
        """H2: http beyond loopback only where the operator says so."""
        keyed = {("base_url",): instance.base_url or ""} | {("urls", key): url for key, url in instance.urls.items()}
        for key, url in keyed.items():
            if not instance.allow_http and url.lower().startswith("http://") and not is_loopback(url):
                why = "http:// sends the credential readable for all; use https://, or allow_http = true"
                raise self.error((*path, *key), why)

    def known(self, table: Mapping[str, Any], path: tuple[str, ...], keys: tuple[str, ...]) -> None:
        """Refuse the first key that is not in *keys*, with the nearest one."""
        for key in table:
            if key not in keys:
                from difflib import get_close_matches

                near = get_close_matches(key, keys, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(sorted(keys))}"
                raise self.error((*path, key), f"unknown key; {hint}")

    def error(self, path: tuple[str, ...], what: str) -> Refused:
        """The error for the key at *path*."""
        return _refused(self._text, path, what)


def _refused(text: str, path: tuple[str, ...], what: str, code: str = "config") -> Refused:
    line = line_of(text, path)
    place = f"{FILE_NAME}:{line}" if line else FILE_NAME
    key = ".".join(path)
    return Refused(f"{place}: {key}: {what}", code=code, line=line, key=key)


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """The line on which the key at *path* is set, or its table begins, else of what it would stand in; None: nowhere,
    or it is written in a way we cannot follow.

    For error texts only: a plain walk over lines, no TOML parser (tomllib keeps no positions).
    """
    here: tuple[str, ...] = ()
    nearest, shared = None, 0
    for number, line in enumerate(text.splitlines(), 1):
        header, key = _HEADER_LINE.match(line), _KEY_LINE.match(line)
        if header:
            full = here = _split(header[1])
        elif key:
            full = (*here, *_split(key[1]))
        else:
            continue
        if full == path:
            return number
        common = min(len(full), len(path))
        if common > shared and full[:common] == path[:common]:
            nearest, shared = number, common
    return nearest


def _split(dotted: str) -> tuple[str, ...]:
    parts = re.findall(_KEY, dotted)
    return tuple(part[1:-1] if part[0] in "\"'" else part for part in parts)
