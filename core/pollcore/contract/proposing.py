"""What saved answers let an author think of where state and job id are.

Job: answers -> paths and states that were seen. Must not know: what a new file holds, files, terminals.
Source: spec S2: nothing is guessed. A path is proposed by the names of fields, and nothing is decided by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from pollcore.contract.expressions import compile_expression

STATE_KEYS: Final = (
    "status", "state", "phase", "job_status", "jobstatus", "job_state", "run_status", "run_state", "lifecycle_state",
    "life_cycle_state", "execution_status", "stage", "conclusion", "result_state",
)  # fmt: skip
"""Names that fields with a state often have, the likeliest first; only to propose a path."""
ID_KEYS: Final = ("id", "job_id", "jobid", "run_id", "task_id", "execution_id", "uuid", "guid", "name")
MAX_DEPTH: Final = 5
MAX_FIELDS: Final = 2_000
MAX_STATE: Final = 64
MAX_PROPOSED: Final = 5
"""Paths that are named beside the one that was taken."""
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_STATE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.:/ -]*", re.ASCII)


State = str | int | float | bool
"""A value that an answer may have for its state; `1`, `"1"` and `true` are three."""


class Field(msgspec.Struct, frozen=True):
    """One field of an answer: its path as an expression, its value."""

    path: str
    value: Any


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What saved answers let one think. *states*: seen at the first of *state_paths*, or where the author said, in the
    order of the answers, with the types they have there."""

    state_paths: tuple[Field, ...] = ()
    job_id_paths: tuple[Field, ...] = ()
    states: tuple[State, ...] = ()


def proposal(bodies: Sequence[Any], job_id: str | None = None) -> Proposal:
    """Paths that may hold state and job id in *bodies* (decoded JSON), by the names of their fields, or by *job_id*."""
    found = [list(_fields(body, "body", 0)) for body in bodies]
    every = [one for fields in found for one in fields]
    states = _ranked((one for one in every if _is_state(one.value)), STATE_KEYS)
    ids = _ranked((one for one in every if isinstance(one.value, str | int) and one.value is not True), ID_KEYS)
    if job_id is not None:
        same = [one for one in every if not isinstance(one.value, bool) and str(one.value) == job_id]
        ids = _once([*same, *ids])
    seen: dict[str, None] = {}
    if states:
        seen = {
            str(one.value): None for fields in found for one in fields if one.path == states[0].path and one.value != ""
        }
    return Proposal(state_paths=states[:MAX_PROPOSED], job_id_paths=ids[:MAX_PROPOSED], states=tuple(seen))


def seen_at(state: str, scopes: Sequence[Mapping[str, Any]]) -> tuple[State, ...]:
    """What *state*, an expression, reads out of answers, once each; *scopes*: `body` and `http` of each.

    An expression that does not read, or that raises on an answer, has seen nothing there.
    """
    try:
        expression = compile_expression(state)
    except ValueError:
        return ()
    seen: dict[str, State] = {}
    for scope in scopes:
        try:
            value = expression.read(dict(scope))
        except Exception:  # JMESPath raises what it likes on ordinary answers
            continue
        if isinstance(value, str | int | float) and value != "" and len(str(value)) <= MAX_STATE:
            seen.setdefault(msgspec.json.encode(value).decode(), value)
    return tuple(seen.values())


def _fields(value: Any, path: str, depth: int) -> Iterator[Field]:
    """The scalars of an answer, objects alone: a list has many states, and nobody can say which is the job's."""
    if not isinstance(value, dict) or depth >= MAX_DEPTH:
        return
    for count, (key, inner) in enumerate(value.items()):
        if count >= MAX_FIELDS:
            return
        if not key.isprintable():  # no name that anybody would write into a file
            continue
        step = key if _PLAIN.fullmatch(key) else msgspec.json.encode(key).decode()
        here = f"{path}.{step}"
        if isinstance(inner, dict):
            yield from _fields(inner, here, depth + 1)
        elif isinstance(inner, str | int | float | bool):
            yield Field(here, inner)


def _is_state(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= MAX_STATE and _STATE.fullmatch(value) is not None


def _ranked(fields: Iterator[Field], keys: Sequence[str]) -> tuple[Field, ...]:
    """Those whose last name is one of *keys*, the likeliest name first, then the shallowest."""
    named = [(keys.index(last), one.path.count("."), one) for one in fields if (last := _last(one.path)) in keys]
    return _once([one for *_, one in sorted(named, key=lambda found: found[:2])])


def _once(fields: Sequence[Field]) -> tuple[Field, ...]:
    """Each path once, with the value that it has first: several answers about one kind of job have the same fields."""
    first: dict[str, Field] = {}
    for one in fields:
        first.setdefault(one.path, one)
    return tuple(first.values())


def _last(path: str) -> str:
    return path.rpartition(".")[2].strip('"').lower()
