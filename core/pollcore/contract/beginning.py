"""A contract file begun for its author: a whole, commented text that `check` accepts and that reads beside docs.

Job: what the author said, and what saved answers showed -> text. Must not know: files, terminals, the provider.
Source: spec S2: nothing is guessed. A path is proposed and marked as such; what a state means, only the author says: a
state that was seen stands in a comment, and stops as unknown until it is listed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from pollcore.contract import placeholders
from pollcore.contract.placeholders import MARK, NOWHERE
from pollcore.contract.proposing import Field, State

HTTP_STATUS: Final = "http.status"
"""The one place of a state that is known to hold a number."""
_PARAM: Final = re.compile(r"\{params\.([A-Za-z0-9_-]+)")


class Begun(msgspec.Struct, frozen=True, kw_only=True):
    """What the author said; empty: a placeholder, marked as one."""

    name: str
    base_url: str = ""
    path: str = "/v1/jobs/{job_id}"
    method: str = "GET"
    credential: str = "bearer"
    credential_names: tuple[str, ...] = ()
    state: str = ""
    job_id: str = ""
    """Where the answer repeats the id that the author named; only then the answer's identity is held against it."""
    job_id_proposed: str = ""
    source: str = ""
    states: Mapping[str, Sequence[str]] = {}
    """List of `[states]` -> states that the author put there."""
    seen: tuple[State, ...] = ()
    """States in saved answers."""
    also: tuple[Field, ...] = ()
    """Other fields that may hold the state."""


LISTS: Final = {
    "waiting": "it goes on: the next observation is allowed, nothing else",
    "succeeded": "the end that permits the next action",
    "failed": "",
    "cancelling": "it goes on as well, towards a cancelled end",
    "cancelled": "",
    "expired": "the job, or its record, is gone",
    "needs_human": "somebody has to act at the provider",
}


def text(begun: Begun) -> str:
    """The contract file. It reads (`parse`) whatever was given, if the author's own words do."""
    name = begun.name
    url = begun.base_url or f"https://api.{name}{NOWHERE}"
    source = begun.source or placeholders.SOURCE
    return _TEXT.format(
        name=name,
        quoted_name=quoted(name),
        source=quoted(source),
        base_url=quoted(url),
        base_note="" if begun.base_url else f"   # {MARK} the provider's server",
        credential=_credential(begun) + _params(begun),
        request=_request(begun),
        state=_state(begun),
        states=_states(begun),
        identity=_identity(begun),
        answer=_answer(begun),
        cancel=quoted(f"{_address(begun).partition('?')[0].rstrip('/')}/cancel"),
        todo=MARK,
        evidence=quoted(placeholders.EVIDENCE),
        consequences=quoted(placeholders.CONSEQUENCES),
        deadline_basis=quoted(placeholders.DEADLINE_BASIS),
    )


def quoted(value: str) -> str:
    """A TOML basic string on one line; what does not print is written out."""
    return '"' + "".join(_escaped(char) for char in value) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if char.isprintable():
        return char
    return f"\\u{ord(char):04X}" if ord(char) <= 0xFFFF else f"\\U{ord(char):08X}"


def _literal(state: State) -> str:
    """As TOML and JSON write it."""
    return quoted(state) if isinstance(state, str) else msgspec.json.encode(state).decode()


def _credential(begun: Begun) -> str:
    lines = [f"kind = {quoted(begun.credential)}"]
    if begun.credential in ("header", "query"):
        names = begun.credential_names or (("X-Api-Key",) if begun.credential == "header" else ("api_key",))
        lines.append(f"names = [{', '.join(map(quoted, names))}]")
        if not begun.credential_names:
            lines[-1] += f"   # {MARK} what the provider calls it"
    return "\n".join(lines)


def _params(begun: Begun) -> str:
    """A table for each parameter that the path names: without one the file would not read."""
    names = dict.fromkeys(_PARAM.findall(begun.path))
    return "".join(f"\n\n[params.{name}]\nrequired = true\nabout = {quoted(placeholders.ABOUT)}" for name in names)


def _address(begun: Begun) -> str:
    return begun.path if "://" in begun.path else "{base_url}/" + begun.path.lstrip("/")


def _request(begun: Begun) -> str:
    lines = [f"url = {quoted(_address(begun))}"]
    if begun.method != "GET":
        lines.insert(0, f"method = {quoted(begun.method)}")
    return "\n".join(lines)


def _state(begun: Begun) -> str:
    lines = [f"value = {quoted(begun.state or 'body.status')}"]
    if not begun.state:
        lines[0] += f"   # {MARK} where the answer says how the job is"
    elif begun.seen:
        lines[0] += f"   # the saved answer says {_literal(begun.seen[0])} there"
    lines += [f"# another field that may be it: {one.path} ({quoted(str(one.value))})" for one in begun.also]
    return "\n".join(lines)


def _states(begun: Begun) -> str:
    lines = []
    width = max(len(name) for name in LISTS)
    # a number that an answer was seen to have is written as one: its text would be another state
    numbers = {_literal(state): state for state in begun.seen if not isinstance(state, str)}
    if begun.state == HTTP_STATUS:
        named = (state for states in begun.states.values() for state in states)
        numbers |= {state: int(state) for state in named if state.isascii() and state.isdigit() and len(state) == 3}
    typed = {
        name: [state if state in begun.seen else numbers.get(state, state) for state in begun.states.get(name, ())]
        for name in LISTS
    }
    for name, what in LISTS.items():
        given = ", ".join(map(_literal, typed[name]))
        line = f"{name.ljust(width)} = [{given}]"
        lines.append(f"{line}   # {what}" if what else line)
    listed = {_literal(state) for states in typed.values() for state in states}
    for state in map(_literal, begun.seen):
        if state not in listed:
            lines.append(f"# seen in a saved answer: {state}. Put it where the documentation says it belongs")
    return "\n".join(lines)


def _identity(begun: Begun) -> str:
    if begun.job_id:
        return f"[identity]\njob_id = {quoted(begun.job_id)}   # another job's answer stops as wrong_job"
    path = quoted(begun.job_id_proposed or "body.id")
    return f"# [identity]\n# job_id = {path}   # where the answer repeats the id that was asked for"


def _answer(begun: Begun) -> str:
    path = quoted(begun.job_id or begun.job_id_proposed or "body.id")
    return f"# [submission.answer]\n# job_id = {path}   # in the answer to the job's own submission"


_TEXT: Final = """\
# {name}: {todo} what one job of it is, and its trap.
# Keys: docs/contracts.md. 'pollconsole provider check' reads this file, 'provider explain' shows how a saved answer
# reads, 'provider try' sends one request, 'provider impact' holds a change against what is stored.
schema = 1
name = {quoted_name}
title = {quoted_name}
sources = [{source}]
tested_live = "no"   # which version, and when, once it ran on an account; until then an operator is asked first
base_url = {base_url}{base_note}

[credential]
{credential}

[status]
{request}
# observation = "read_only"   # once the documentation says that asking changes nothing
# evidence = {evidence}

[state]
{state}

# Every state that the documentation names belongs into one list, spelt as the provider spells it. A state that is in
# none stops the wait and asks an operator; nothing is guessed.
[states]
{states}

# Where the HTTP status alone says how the job is, rules say what it means (a 4xx needs one as well):
# [[rules]]
# status = [202]
# category = "waiting"

# What a success must have before anything is done with it, and what contradicts one:
# [[success.requires]]
# path = "body.download_url"
# name = "url"
# format = "url"
# hosts = ["files.{name}.example"]
# [success]
# forbids = ["body.error"]

# The provider's own words about a failure:
# [error]
# code = "body.error.code"
# message = "body.error.message"

{identity}

# When to ask again, if answers say so beside Retry-After; the cap is the largest value that the documentation names:
# [[hints]]
# path = "body.poll_after_seconds"
# unit = "seconds"
# cap = "1h"

# The documented cancel. What it ends, what stays, what it costs: an operator reads it before granting.
# [cancel]
# method = "POST"
# url = {cancel}   # {todo} where the documentation puts it
# consequences = {consequences}
# confirm = {{ minutes = 5, checks = 4 }}

{answer}

[schedule]
base_delay = "5s"
max_delay = "2m"

[limits]
deadline_basis = {deadline_basis}
# retention = "24h"   # how long the provider keeps the job; a deadline beyond it is refused
extend = [{{ minutes = 15, checks = 4 }}, {{ minutes = 60, checks = 20 }}]

[limits.default]
deadline = "40m"
max_status_requests = 25
max_transport_failures = 3
max_rate_limited = 3

[limits.max]
deadline = "8h"
max_status_requests = 300
max_transport_failures = 20
max_rate_limited = 20
"""
