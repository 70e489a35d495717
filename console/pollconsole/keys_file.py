"""HOME/keys.toml: the operator's own keys.

Job: read the file, check each entry by itself, name what is wrong with it; the rest holds. Must not know: widgets, what
an action does. No entry can touch a card: its keys are fixed, and no other action can take them.

Source: spec G3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from pollconsole import bridge
from pollconsole.key_names import ACTIONS, CARD_KEYS, EVERYWHERE, FIXED, SCREENS, key_name, known_keys, shown

FILE: Final = "keys.toml"
"""In the home."""
TABLE: Final = "keys"
MAX_BYTES: Final = 64 * 1024
MAX_KEYS: Final = 6
"""Of one action."""
MAX_COMPLAINTS: Final = 20
NEARNESS: Final = 0.6
_SKIPPED: Final = "skipped"


class KeyMap(msgspec.Struct, frozen=True):
    """The keys in force. *chosen*: by action, the keys of the file in place of the default ones."""

    chosen: dict[str, tuple[str, ...]] = {}
    complaints: tuple[str, ...] = ()

    def keys(self, name: str) -> tuple[str, ...]:
        """All keys of an action, by the names of their events."""
        return self.chosen.get(name) or ACTIONS[name].keys

    def shown(self, name: str) -> str:
        """The key of an action as a footer shows it: the first one."""
        return shown(self.keys(name)[0])

    def all_shown(self, name: str) -> str:
        """`Enter or t`."""
        return " or ".join(shown(key) for key in self.keys(name))

    def bindings(self) -> dict[str, str]:
        """What differs from the default keys: action -> `key,key`."""
        return {name: ",".join(keys) for name, keys in self.chosen.items()}


def read(home: Path | None) -> KeyMap:
    """The keys in force in *home*. Raises nothing: what cannot be used is complained of and skipped."""
    if home is None:
        return KeyMap()
    path = home / FILE
    try:
        text = bridge.read_plain(path, MAX_BYTES).decode("utf-8")
    except FileNotFoundError:
        return KeyMap()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no UTF-8 text"
        return KeyMap({}, (f"{FILE}: cannot be read: {why}; the default keys hold",))
    return parse(text)


def parse(text: str) -> KeyMap:
    """The keys that *text* of the file asks for, as far as they can be had."""
    import tomllib

    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        return KeyMap({}, (f"{FILE}: is no TOML: {error or 'nested too deep'}; the default keys hold",))
    wrong: list[str] = []
    for name in document:
        if name != TABLE:
            wrong.append(f"{FILE}: {name}: no such table, the keys stand in [{TABLE}]; {_SKIPPED}")
    table = document.get(TABLE, {})
    if not isinstance(table, dict):
        return KeyMap({}, (*wrong, f"{FILE}: {TABLE}: is no table; the default keys hold"))
    lines = _lines_of(text)
    wanted: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        found = _entry(name, value)
        if isinstance(found, str):
            wrong.append(_complaint(lines, name, found))
        else:
            wanted[name] = found
    for name, why in _take_out_conflicts(wanted):
        wrong.append(_complaint(lines, name, why))
    return KeyMap(wanted, tuple(wrong[:MAX_COMPLAINTS]))


def _entry(name: str, value: Any) -> tuple[str, ...] | str:
    """The keys of one entry, or what is wrong with it."""
    if name not in ACTIONS:
        return f"no such action{_did_you_mean(name, ACTIONS)}"
    written = [value] if isinstance(value, str) else value
    if not isinstance(written, list) or not all(isinstance(each, str) for each in written):
        return "is no key and no list of keys"
    if not 0 < len(written) <= MAX_KEYS:
        return f"names {len(written)} keys, between 1 and {MAX_KEYS} are possible"
    keys: list[str] = []
    for each in written:
        key = key_name(each)
        if key is None:
            return f"{each!r} is no key{_did_you_mean(each.lower(), known_keys())}"
        if why := _reserved(key, name):
            return f"{shown(key)} {why}"
        keys.append(key)
    return tuple(dict.fromkeys(keys))


def _reserved(key: str, name: str) -> str:
    """Why no file gives *key* to *name*; empty: it can."""
    if key in FIXED:
        return f"{FIXED[key]}; no action can have it"
    if key in CARD_KEYS and key not in ACTIONS[name].keys:
        return "is a key of cards; no other action can have it"
    return ""


def _take_out_conflicts(wanted: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """Take entries out of *wanted*, the last first, until no key does two things on one screen; name and why of each.

    Ends: the default keys do not conflict.
    """
    taken_out: list[tuple[str, str]] = []
    while wanted:
        clash = _clash(wanted)
        if clash is None:
            break
        name, key, other, screen = clash
        del wanted[name]
        taken_out.append((name, f"{shown(key)} is the key of {other} on the screen {screen!r}"))
    return taken_out


def _clash(wanted: Mapping[str, tuple[str, ...]]) -> tuple[str, str, str, str] | None:
    """(entry to skip, key, the other action, screen)."""
    place = {name: number for number, name in enumerate(wanted)}
    for screen in SCREENS:
        owner: dict[str, str] = {}
        for action in ACTIONS.values():
            if screen not in action.where and EVERYWHERE not in action.where:
                continue
            for key in wanted.get(action.name, action.keys):
                other = owner.setdefault(key, action.name)
                if other == action.name:
                    continue
                later, first = sorted((action.name, other), key=lambda name: place.get(name, -1), reverse=True)
                if later in wanted:
                    return later, key, first, screen
    return None


def _lines_of(text: str) -> dict[str, int]:
    """Line numbers of the entries, as far as they can be told from their beginnings."""
    found: dict[str, int] = {}
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[\s*[\"']?([^\]\"']+)", line):
            inside = header[1].strip() == TABLE
        elif inside and (entry := re.match(r"\s*[\"']?([\w-]+)[\"']?\s*=", line)):
            found.setdefault(entry[1], number)
        elif dotted := re.match(rf"\s*{TABLE}\.[\"']?([\w-]+)[\"']?\s*=", line):
            found.setdefault(dotted[1], number)
    return found


def _complaint(lines: Mapping[str, int], name: str, why: str) -> str:
    place = f"{FILE} line {lines[name]}" if name in lines else FILE
    return f"{place}: {TABLE}.{name}: {why}; {_SKIPPED}"


def _did_you_mean(written: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(written, list(known), n=1, cutoff=NEARNESS)
    return "".join(f"; did you mean {each}?" for each in near)
