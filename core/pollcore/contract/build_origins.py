"""Keys `origins`, `base_url`, tables `credential`, `params`: where requests may go, and with what.

Job: TOML -> allowed origins, the kind of credential, declared parameters. Must not know: requests, secrets.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec

from pollcore.contract.near import did_you_mean
from pollcore.contract.origins import covers, is_loopback, normalise_origin, wildcard
from pollcore.contract.parts import Param
from pollcore.contract.patterns import regex
from pollcore.contract.tables import Table
from pollcore.contract.templates import UrlTemplate
from pollcore.facts import SESSION_CALLS, SESSION_MINUTES, Refused

MAX_PARAMS: Final = 50
MAX_REVEALS: Final = 400
ENTRY: Final = frozenset({"origin", "credential"})
"""Keys of an entry of `origins` that is a table."""
KINDS: Final = ("none", "bearer", "basic", "header", "query", "sigv4")
"""How a credential is sent. Where a bearer token is bought (OAuth 2, a service account) belongs to the credential."""

TOKEN: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Origins:
    """Where requests may go: exact origins, wildcards, and those that get no credential."""

    def __init__(self, root: Table) -> None:
        """Raises ContractError."""
        self.allowed: list[str] = []
        self.bare: set[str] = set()
        self.base_url: str | None = None
        self.required = root.flag("requires_base_url")
        base = root.text("base_url")
        for entry in root.array("origins"):
            self._add(root, entry)
        if base is not None:
            if self.required:
                root.fail("base_url", "is given, so requires_base_url cannot be true; take one of the two out")
            self.base_url = checked_base_url(base, lambda why: root.fail("base_url", why))
            self._allow(normalise_origin(self.base_url))

    def _add(self, root: Table, entry: Any) -> None:
        credential, text = True, entry
        if isinstance(entry, dict):
            text, credential = entry.get("origin"), entry.get("credential", True)
            for key in sorted(set(entry) - ENTRY):
                root.fail("origins", f'unknown key "{key}"{did_you_mean(key, ENTRY)}')
            if not isinstance(credential, bool):
                root.fail("origins", 'an entry is "https://host" or { origin = "https://host", credential = false }')
        if not isinstance(text, str):
            root.fail("origins", 'an entry is "https://host" or { origin = "https://host", credential = false }')
        origin = wildcard(text) or self._exact(root, text)
        self._allow(origin)
        if not credential:
            self.bare.add(origin)

    def _exact(self, root: Table, text: str) -> str:
        try:
            origin = normalise_origin(text)
        except Refused as error:
            root.fail("origins", f'"{text}": {error}; a wildcard is written "https://*.example.net"')
        if text.rstrip("/").count("/") > 2:
            root.fail("origins", f'"{text}" has a path; an origin is scheme, host and port')
        if origin.startswith("http://") and not is_loopback(origin):
            root.fail("origins", f'"{text}": http is for loopback alone; an instance may set allow_http = true')
        return origin

    def _allow(self, origin: str) -> None:
        if origin not in self.allowed:
            self.allowed.append(origin)

    def check_static(self, table: Table, url: UrlTemplate) -> None:
        """A URL whose host is written out lies inside the origins, or becomes the one origin when none was named."""
        if url.authority is None:
            return
        try:
            origin = normalise_origin(url.authority)
        except Refused as error:
            table.fail("url", str(error))
        if not self.allowed:
            self._exact(table, url.authority)
            self._allow(origin)
        if not any(covers(allowed, origin) for allowed in self.allowed):
            table.fail("url", f"{origin} is not in origins ({', '.join(self.allowed)}); add it there if it is meant")


def checked_base_url(text: str, fail: Callable[[str], NoReturn]) -> str:
    """A base URL without query and without a slash at its end; *fail* raises."""
    url = text.rstrip("/")
    try:
        normalise_origin(url)
    except Refused as error:
        fail(str(error))
    if "?" in url:
        fail("has a query; a base URL is scheme, host, port and perhaps a path")
    return url


class CredentialTerms(msgspec.Struct, frozen=True, kw_only=True):
    """What `[credential]` says (R23, G6, G7)."""

    kind: str
    names: tuple[str, ...]
    """Of headers, or of the query parameter."""
    optional: bool
    least_mode: str
    reveals: str | None
    session_minutes: int
    session_calls: int


def build_credential(root: Table) -> CredentialTerms:
    """Read `[credential]`."""
    table = root.table("credential")
    if table is None:
        root.fail("credential", 'missing; say kind = "bearer", "basic", "header", "query", "sigv4" or "none"')
    kind = table.required_text("kind", f"one of {', '.join(KINDS)}")
    table.choice("kind", KINDS, "")
    names = table.texts("names")
    optional, least = (
        table.flag("optional"),
        table.choice("least_mode", ("standing", "per_session", "per_call"), "standing"),
    )
    reveals = table.text("reveals", max_length=MAX_REVEALS)
    minutes = table.whole("session_minutes", least=1, most=SESSION_MINUTES)
    calls = table.whole("session_calls", least=1, most=SESSION_CALLS)
    table.finish()
    wanted = {"header": (1, 2), "query": (1, 1), "sigv4": (2, 2)}.get(kind, (0, 0))
    if not wanted[0] <= len(names) <= wanted[1]:
        many = {
            "header": "one or two header names",
            "query": "one name",
            "sigv4": "the service and the name of the parameter that tells the region",
        }.get(kind, "no names")
        table.fail("names", f'kind = "{kind}" takes {many}')
    for name in names:
        if not TOKEN.fullmatch(name):
            table.fail("names", f'"{name}" is no header or parameter name')
    return CredentialTerms(
        kind=kind,
        names=names,
        optional=optional or kind == "none",
        least_mode=least,
        reveals=reveals,
        session_minutes=SESSION_MINUTES if minutes is None else minutes,
        session_calls=SESSION_CALLS if calls is None else calls,
    )


def build_params(root: Table) -> tuple[Param, ...]:
    """Read `[params]`: what a submission may or must name beside the job id (R19)."""
    table = root.table("params")
    if table is None:
        return ()
    if len(table.values) > MAX_PARAMS:
        root.fail("params", f"more than {MAX_PARAMS} parameters")
    found = []
    for name in table.values:
        if not WORD.fullmatch(name):
            table.fail(name, "a parameter's name is letters, digits, _ and -")
        inner = table.table(name)
        assert inner is not None
        default = inner.raw("default")
        if default is not None and not isinstance(default, str | int | float | bool):
            inner.fail("default", "must be a string, number or boolean")
        found.append(
            Param(
                name=name,
                required=inner.flag("required"),
                default=default,
                pattern=inner.made("pattern", regex),
                about=inner.text("about"),
            )
        )
        inner.finish()
    return tuple(found)
