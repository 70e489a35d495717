"""Every argument and option of every command, given what nobody should give: one clear line, the documented code."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import click
import pytest
from tests.console.cli.conftest import Outcome

from pollconsole.cli.root import root

Call = Callable[..., Outcome]

HOSTILE: Final = (
    "", " ", "\x1b[31mred\x07", "\x00", "a\x00b", "a\nb", "\udcff\udc80", "\ud800", "\u202eevil", "-1", "inf", "nan",
    "1e999", "9" * 400, "99999999999d", "/", ".", "/dev/full", "/nowhere/at/all", "\u0663", "http://[::1",
    "a" * 100_000,
)  # fmt: skip
NEVER: Final = frozenset({"demo", "mcp", "run", "audit move-keys"})
"""They run until they are ended, or change where keys lie; their arguments have tests of their own."""
BASE: Final[dict[str, tuple[str, ...]]] = {
    "submit": ("--provider", "lab", "--job-id", "j", "--dry-run"),
    "show": ("op-a",),
    "wait": ("op-a", "--timeout", "0s"),
    "result": ("op-a",),
    "fetch": ("op-a", "--to", "out"),
    "request-extension": ("op-a", "--minutes", "15", "--checks", "4", "--because", "x"),
    "close": ("op-a", "--because", "x"),
    "hold": ("op-a", "--because", "x"),
    "reject": ("op-a", "--because", "x"),
    "deny": ("op-a", "--because", "x"),
    "pause": ("--provider", "lab", "--until", "1h"),
    "audit export": ("out",),
    "audit forget": ("0", "--because", "x"),
    "audit accept-loss": ("--because", "x"),
    "provider show": ("lab",),
    "provider check": ("none.toml",),
    "provider explain": ("lab", "--response", "none.txt"),
    "provider new": ("acme",),
    "provider impact": ("none.toml",),
    "credential set": ("k", "--origin", "https://a.example", "--kind", "bearer"),
    "credential remove": ("k",),
    "credential mode": ("k", "standing"),
    "credential end-session": ("k",),
    "notice set": ("n",),
    "notice remove": ("n",),
    "simulate": ("--provider", "lab", "--operations", "1", "--duration", "1m"),
    "backup": ("out.db",),
    "archive": ("--before", "1d"),
    "completion": ("bash",),
}
EXITS: Final = frozenset({0, 1, 2, 3, *range(10, 16), *range(20, 27)})


def commands(group: click.Group = root, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        assert found is not None
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))
        elif " ".join((*path, name)) not in NEVER:
            yield " ".join((*path, name)), found


def lines(name: str, command: click.Command) -> Iterator[list[str]]:
    """Command lines in which one thing is wrong."""
    start, base = name.split(), list(BASE.get(name, ()))
    firsts = [n for n, word in enumerate(base) if not word.startswith("--") and (n == 0 or base[n - 1][:2] != "--")]
    places = iter(firsts)
    for param in command.params:
        if isinstance(param, click.Argument):
            place = next(places, None)
            for value in HOSTILE:
                yield [*start, *(base if place is None else [*base[:place], *base[place + 1 :]]), "--", value]
        elif isinstance(param, click.Option) and not param.is_flag and param.opts[0] != "--home":
            rest = list(base)
            if param.opts[0] in rest:
                at = rest.index(param.opts[0])
                del rest[at : at + 2]
            yield [*start, *rest, param.opts[0]]
            for value in HOSTILE:
                yield [*start, *rest, param.opts[0], value]
    yield [*start, *base, "--no-such-flag"]
    yield [*start, *base, "one", "two", "three"]
    yield start


def wrong(done: Outcome, *, as_json: bool) -> str | None:
    told = done.out + done.err
    if done.code not in EXITS:
        return f"exit code {done.code}"
    if "Traceback" in told or "fault of ours" in told:
        return "a crash"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\ud800-\udfff]", told):
        return "a character that a terminal obeys"
    if done.code in (1, 2) and not done.err.strip() and not done.out.strip():
        return "silence"
    if done.code == 2 and len([line for line in done.err.splitlines() if line.startswith("pollconsole: ")]) != 1:
        return "not one line of what is wrong"
    if as_json and done.code in (1, 2):
        try:
            json.loads(done.out)
        except ValueError:
            return "no document on standard output"
    return None


@pytest.mark.slow
@pytest.mark.rule("G4", "K1")
@pytest.mark.parametrize(("name", "command"), [pytest.param(*one, id=one[0]) for one in commands()])
def test_hostile_arguments_are_refused_in_one_line_and_never_with_a_trace(
    name: str, command: click.Command, real_home: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(real_home.parent)
    monkeypatch.setenv("POLLCONSOLE_HOME", str(real_home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(real_home.parent / "settings"))
    found = []
    for number, argv in enumerate(lines(name, command)):
        as_json = number % 2 == 1
        options = ["--json"] if as_json else []
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
        done = call(*argv[: len(name.split())], *options, *argv[len(name.split()) :])
        why = wrong(done, as_json=as_json)
        if why is not None:
            found.append((why, [word[:60] for word in argv], done.code, done.err[-300:]))
    assert not found
