"""`doctor`: what is wrong here and how to mend it.

Job: look at places, settings, store, keyring, clock, contracts, terminal, each on its own, so that one fault hides no
other; print findings. Must not know: how any of these work (the core says).
"""

from __future__ import annotations

import asyncio
import os
import re
import stat
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from pollconsole import bridge, crash, keys_file, words
from pollconsole.cli import calls, liveness, out, present
from pollconsole.cli.base import Common, command, pass_common
from pollconsole.safe import safe
from pollcore.facts import PollconsoleError

OK: Final = "ok"
NOTE: Final = "note"
WRONG: Final = "wrong"
KEY_FILE: Final = "reading.key"
MADE_BY: Final = "'pollconsole', 'run' or 'submit' makes it"
MAX_CRASHES: Final = 3
"""Traces that are named, the newest."""
MAX_TEXT: Final = 1_000
"""Characters of one finding."""
_ITSELF: Final = re.compile(r"[;:]? (?:see|run) ['`]?pollconsole doctor['`]?(?: and report it)?")
"""What errors say to those who did not call `doctor` yet."""
_GLYPH: Final = {OK: "+", NOTE: ".", WRONG: "x"}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. *mend*: what to do, where there is something to do."""

    name: str
    state: str
    text: str
    mend: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _ITSELF.sub("", self.text))


@command(
    "doctor",
    "pollconsole doctor",
    "pollconsole doctor --json",
    short_help="What is wrong, and how to mend it.",
    exits={0: "nothing is wrong", 1: "something is wrong, or a fault on our side"},
)
@click.pass_context
@pass_common
def doctor(common: Common, ctx: click.Context) -> None:
    """Look at paths, settings, store, keyring, clock, contracts and terminal.

    Nothing is made: without a home or a store the rest is looked at alone. '+' is well, '.' is worth knowing, 'x' is
    wrong; '->' says how to mend it.
    """
    calls.harden(common)
    findings = places(common.home)
    findings = [*_told_once(findings, _guarded("settings", lambda: settings(common.home))), *terminal()]
    facts: dict[str, Any] = {}
    findings = _told_once(findings, _guarded("keys", lambda: own_keys(common.home)))
    findings = _told_once(findings, _guarded("store", lambda: opened(common.home, facts)))
    findings.append(
        Finding(
            "gate",
            NOTE,
            "grants need keypresses in the console; against programs of the same OS user this is advisory",
            "run agents as another OS user than the console",
        )
    )
    if common.json:
        out.document({"findings": [asdict(finding) for finding in findings], "facts": facts})
    else:
        for finding in findings:
            out.text(f"{_GLYPH[finding.state]} {finding.name}: {safe(finding.text, MAX_TEXT)}")
            if finding.mend:
                out.text(f"    -> {safe(finding.mend, MAX_TEXT)}")
    if any(finding.state == WRONG for finding in findings):
        ctx.exit(1)


def _guarded(name: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    """Run one look; an error of it is a finding."""
    try:
        return look()
    except PollconsoleError as error:
        return [Finding(name, WRONG, str(error))]
    except Exception as error:  # doctor is called when things are broken
        return [Finding(name, WRONG, f"could not be looked at: {type(error).__name__}")]


def _told_once(told: list[Finding], more: list[Finding]) -> list[Finding]:
    """Both; a fault that was told already hides what needs what it broke, and is not told again as that one's."""
    faults = {finding.text: finding.name for finding in told if finding.state == WRONG}
    return told + [
        Finding(one.name, NOTE, f"not looked at: mend {faults[one.text]} first")
        if one.state == WRONG and one.text in faults
        else one
        for one in more
    ]


def places(home: Path | None) -> list[Finding]:
    """Folder and files: where they are, and who may read them. Changes nothing."""
    try:
        path = bridge.home_path(home)
        faults = bridge.home_faults(home)
    except PollconsoleError as error:
        return [Finding("home", WRONG, str(error), "name a folder: --home DIR or POLLCONSOLE_HOME")]
    if faults:
        return [Finding("home", WRONG, line) for line in faults]
    if not path.exists():
        return [Finding("home", NOTE, f"{path} does not exist yet{_near(home)}", MADE_BY)]
    found = [Finding("home", OK, str(path)), *_modes(path)]
    crashes = sorted((path / crash.FOLDER).glob("*.txt"), key=_changed)
    for file in crashes[-MAX_CRASHES:]:
        found.append(Finding("crash", NOTE, str(file), "send it with a report of the fault, then delete it"))
    if len(crashes) > MAX_CRASHES:
        found.append(Finding("crash", NOTE, f"{len(crashes) - MAX_CRASHES} older ones in {path / crash.FOLDER}"))
    return found


def _near(home: Path | None) -> str:
    """`; did you mean ...?` of a home that is not there, or nothing."""
    _, mean, names = (bridge.missing_home(home) or "").partition("; did you mean ")
    return mean + names


def _modes(path: Path) -> list[Finding]:
    """Who else may read what is private. Opening mends folder and store; a key file is never touched, only refused."""
    found = []
    for item, most, is_mended in (
        (path, 0o700, True),
        (bridge.store_path(path), 0o600, True),
        (path / KEY_FILE, 0o600, False),
    ):
        try:
            mode = stat.S_IMODE(item.stat().st_mode)
        except OSError:
            continue
        if not mode & ~most:
            continue
        others = f"mode {mode:04o}: others can read it"
        if is_mended:
            why = bridge.stays_open(path) if item == path or not os.access(item, os.W_OK) else None
            found.append(Finding(item.name, NOTE, f"{others}; {why or f'the next start sets {most:04o}'}"))
        else:
            found.append(Finding(item.name, WRONG, f"{others}, so it is not used", f"chmod {most:o} {item}"))
    return found


def _changed(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:  # deleted since it was listed
        return 0.0


def settings(home: Path | None) -> list[Finding]:
    """`config.toml`, and the instances that talk without TLS."""
    config = bridge.config(home)
    number = len(config.providers)
    found = [Finding("settings", OK, f"{number} configured provider{'' if number == 1 else 's'} in config.toml")]
    for name, instance in config.providers.items():
        if instance.allow_http:
            found.append(
                Finding(f"provider {name}", NOTE, f"allow_http: {instance.base_url} is asked without encryption; "
                        "whoever is on the way can read its credential", "use https where the server can")
            )  # fmt: skip
    found += [Finding(table, WRONG, "asked for in config.toml", mend) for table, mend in bridge.missing_extras(config)]
    found += [Finding("settings", WRONG, line) for line in bridge.settings_faults(config)]
    if config.keyring_backend:
        found.append(Finding("keyring backend", NOTE, f"{config.keyring_backend} is used because the settings name it"))
    return found


def own_keys(home: Path | None) -> list[Finding]:
    """`keys.toml`, where there is one: what cannot be used of it."""
    path = bridge.home_path(home)
    if not (path / keys_file.FILE).exists():
        return []
    keymap = keys_file.read(path)
    mend = f"mend {path / keys_file.FILE}; docs/reference.md lists actions and keys"
    wrong = [Finding("keys", WRONG, complaint, mend) for complaint in keymap.complaints]
    number = len(keymap.chosen)
    said = f"{keys_file.FILE} gives {number} action{'' if number == 1 else 's'} other keys"
    return [*wrong, Finding("keys", OK, said)]


def terminal() -> list[Finding]:
    """Can the console be drawn here?"""
    if not sys.stdout.isatty():
        return [Finding("terminal", NOTE, "standard output is no terminal; the console is told in lines there")]
    term = os.environ.get("TERM", "")
    if term in ("", "dumb"):
        text = f"TERM is {term or 'unset'}: the console cannot be drawn, only told in lines"
        return [Finding("terminal", WRONG, text, "set TERM")]
    width, height = os.get_terminal_size()
    small = width < 80 or height < 24
    text = f"{term}, {width}x{height}, {sys.stdout.encoding}"
    return [Finding("terminal", NOTE if small else OK, text, "enlarge it to 80x24 for cards" if small else "")]


def opened(home: Path | None, facts: dict[str, Any]) -> list[Finding]:
    """What store, keyring, clock, contracts and heartbeats tell, into *facts* too. A missing store is not made."""

    async def body(core: bridge.Core) -> tuple[dict[str, Any], int | None, list[str]]:
        return await bridge.doctor_facts(core), await present.core_silence(core), list(await core.store.check())

    store = bridge.store_path(home)
    if not os.path.lexists(store):
        facts.update(asyncio.run(bridge.facts_without_a_store(home)))
        found = [_finding(key, value) for key, value in facts.items()]
        if store.parent.exists() and "store" not in facts:
            found.insert(0, Finding("store", NOTE, f"{store} does not exist yet", MADE_BY))
        return found
    told, silent, wrong = bridge.with_core(home, body)
    facts.update(told)
    found = [Finding("store", WRONG, line, "stop all cores and restore a backup, or report it") for line in wrong]
    found += [_finding(key, value) for key, value in told.items()]
    warning = liveness.warning(silent)
    if warning:
        found.append(Finding("core", NOTE, warning.removeprefix("warning: ")))
    else:
        found.append(Finding("core", OK, f"last heartbeat {words.span(silent)} ago"))
    return found


def _finding(key: str, value: Any) -> Finding:
    """One fact of the core; `{"state", "text", "mend"}` is judged already, all else becomes one line."""
    name = key.replace("_", " ")
    if isinstance(value, dict) and "text" in value:
        return Finding(name, value.get("state", OK), str(value["text"]), str(value.get("mend") or ""))
    return Finding(name, OK, _plain(value))


def _plain(value: Any) -> str:
    """Any JSON value in words: no brackets, quotes, `True` or `None` of a programming language."""
    if value is None or value == () or value == [] or value == {}:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{str(key).replace('_', ' ')} {_plain(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_plain(item) for item in value)
    return str(value)
