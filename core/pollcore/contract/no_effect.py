"""What a contract's text says to no effect, and what nobody has proved of it.

Job: findings that need the text itself, as (key, message); `checks` gives them level and line. Must not know: files,
screens, answers.
Source: spec E5, S4, S9, X7.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

from pollcore.contract.document import dotted
from pollcore.contract.expressions import compile_expression
from pollcore.contract.model import Contract
from pollcore.contract.near import near
from pollcore.contract.origins import host_of, is_loopback

FETCH: Final = "fetch_result"
"""The one word of `permits` that the program itself acts on: `fetch` is refused under every other."""
USUAL: Final = (FETCH, "use_result")
"""Words of `permits` that contracts use."""
_SENT: Final = ("method", "url", "query", "headers", "body", "form", "provider_url")
"""What makes two requests one."""
_HEADERS: Final = ("http", "headers")
Found = list[tuple[str, str]]


def warnings(contract: Contract) -> Found:
    """What can never do what its author means by it."""
    root = tomllib.loads(contract.snapshot_text)
    texts = texts_of(contract)
    return [
        *_silent_cancel(contract, root),
        *_never_a_header(texts),
        *_unread_params(contract, texts),
        *_outside_origins(contract),
        *_permits(contract),
    ]


def texts_of(contract: Contract) -> list[tuple[str, str]]:
    """Every text of the contract's file with its key, as `hints[1].path`."""
    return list(_texts(tomllib.loads(contract.snapshot_text), ()))


def notes(contract: Contract) -> Found:
    """What is told to nobody, and what nobody has proved yet."""
    found: Found = []
    permits = contract.success.permits
    if contract.result is not None and permits != FETCH:
        found.append(("success.permits", f'"{permits}" permits no fetch, so [result] is never asked: "{FETCH}" does'))
    if contract.observation is None:
        found.append(("status.observation", "not declared read_only: the operator is asked at the first use"))
    elif contract.asks_first_use:
        why = "read_only alone does not do: until evidence is given and tested_live names what was tried, "
        why += "the first use is asked about"
        found.append(("status.observation", why))
    if not contract.tried:
        given = "not given" if contract.tested_live is None else f'"{contract.tested_live}"'
        found.append(("tested_live", f"{given}: nobody has run this contract against the real provider yet"))
    if not contract.sources:
        found.append(("sources", "none: say where the facts come from"))
    if contract.account is None and not all(is_loopback(origin) for origin in contract.origins):
        found.append(("account", "none here: it comes from the command, the instance or the credential"))
    return found


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
    """Every text of the file with its key, as `hints[1].path`. Depth and number are the parser's limits."""
    if isinstance(value, str):
        yield dotted(path), value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from _texts(one, (*path, key))


def _silent_cancel(contract: Contract, root: dict[str, Any]) -> Found:
    """Read from the text: a contract whose server is still to be named has no cancel yet, whatever its text says."""
    found: Found = []
    table = root.get("cancel", {"consequences": ""})
    if contract.policy.cancel is None and "consequences" not in table:
        found.append(("cancel", "without consequences it is never offered: say what a cancel does"))
        if "force" in table:
            found.append(("cancel.force", "follows a cancel, which is never offered: give [cancel] its consequences"))
    force = table.get("force")
    if force is not None and all(force.get(key) == table.get(key) for key in _SENT):
        found.append(
            ("cancel.force", "sends the same request as [cancel]: give it the one that is documented as its own")
        )
    return found


def _never_a_header(texts: list[tuple[str, str]]) -> Found:
    """Names of `http.headers` are lower case, as answers are kept."""
    found = []
    for key, text in texts:
        if "http.headers" not in text:
            continue
        try:
            prefixes = compile_expression(text).prefixes
        except ValueError:
            continue
        for prefix in prefixes:
            name = str(prefix[2]) if prefix[:2] == _HEADERS and len(prefix) > len(_HEADERS) else ""
            if name != name.lower():
                found.append((key, f'header "{name}" is always null: names are lower case, write "{name.lower()}"'))
    return found


def _unread_params(contract: Contract, texts: list[tuple[str, str]]) -> Found:
    said = "\n".join(text for key, text in texts if not key.startswith("params."))
    whole = re.search(r"submitted\.params(?![.\w])", said) is not None
    return [
        (f"params.{one.name}", f"nothing reads it: write {{params.{one.name}}} where it belongs, or take it out")
        for one in contract.params
        # sigv4 names the parameter that tells the region without a placeholder
        if not whole and one.name not in contract.credential_names and not _read(one.name, said)
    ]


def _read(name: str, said: str) -> bool:
    return re.search(rf'params\.(?:"{re.escape(name)}"|{re.escape(name)}(?![\w-]))', said) is not None


def _outside_origins(contract: Contract) -> Found:
    """Hosts that a success may name as the result's, and that `fetch` would refuse."""
    plan = contract.result
    if plan is None or plan.url is None or plan.url.first is None or plan.url.first.group != "result":
        return []
    field, reach = plan.url.first.name, [host_of(origin) for origin in contract.origins]
    hosts = [
        (f"success.requires[{n}].hosts", host)
        for n, one in enumerate(contract.success.requires, 1)
        if one.name == field
        for host in one.hosts
    ]
    if contract.redirect is not None and contract.redirect.field == field:
        hosts += [("redirect.hosts", host) for host in contract.redirect.hosts]
    why = "is in no origin, so a result there is never fetched: add it to origins as well"
    return [(key, f'"{host}" {why}') for key, host in hosts if not any(_reaches(one, host) for one in reach)]


def _reaches(allowed: str, host: str) -> bool:
    """Whether the host of an origin (`files.x`, `*.x`) is, or takes in, *host*, which may be a wildcard as well."""
    return allowed == host or (allowed.startswith("*.") and host.removeprefix("*").endswith(allowed[1:]))


def _permits(contract: Contract) -> Found:
    permits = contract.success.permits
    meant = near(permits, USUAL)
    if permits not in USUAL and meant is not None:
        return [("success.permits", f'"{permits}" is told to the caller as it stands (did you mean "{meant}"?)')]
    return []
