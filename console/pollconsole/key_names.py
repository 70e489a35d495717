"""Every action that a key does, by its name in HOME/keys.toml, and every key, by the name that a person gives it.

Job: pure tables: action -> default keys and the screens that have it; a key as it is written -> the name of its event,
and back. Must not know: files, widgets, what an action does. What a card has is not here: its keys are fixed.

Source: spec G3.
"""

from __future__ import annotations

import unicodedata
from typing import Final

import msgspec

EVERYWHERE: Final = "everywhere"
SCREENS: Final = ("table", "detail", "queue", "lines", "listing", "audit", "themes")
"""Where an action can be. `lines`: help, messages, log, settings, a contract's text and what an answer did; `listing`:
providers and credentials. The audit has what `lines` have, and its own."""


class Named(msgspec.Struct, frozen=True):
    """One action. *keys*: its keys where no file says otherwise, by the names of key events; *does*: a few words."""

    name: str
    keys: tuple[str, ...]
    does: str
    where: tuple[str, ...]


def _everywhere(name: str, keys: str, does: str) -> Named:
    return Named(name, tuple(keys.split(",")), does, (EVERYWHERE,))


def _on(where: str, name: str, keys: str, does: str) -> Named:
    return Named(name, tuple(keys.split(",")), does, tuple(where.split()))


_MOVING: Final = " ".join(SCREENS)
_ALL: Final = (
    _everywhere("decisions", "E", "the queue of decisions"),
    _everywhere("approvals", "A", "the queue of approvals"),
    _everywhere("credentials", "K", "credentials, never a value"),
    _everywhere("providers", "P", "providers and their contracts"),
    _everywhere("messages", "M", "what was said"),
    _everywhere("audit", "V", "the audit: is it anchored, is it whole"),
    _everywhere("log", "L", "what the core did, the newest last"),
    _everywhere("settings", "comma", "settings in force, and where each comes from"),
    _everywhere("exact_times", "i", "times and sizes exactly, UTC and local, or about"),
    _everywhere("help", "question_mark", "every key"),
    _everywhere("themes", "T", "see every theme, keep one"),
    _everywhere("palette", "colon", "every action by its name"),
    _everywhere("redraw", "ctrl+l", "draw the screen anew"),
    _everywhere("quit", "q", "ask to quit, say what goes on"),
    _everywhere("quit_now", "Q", "quit, within 3 seconds of asking"),
    _on(_MOVING, "down", "down,j", "one line down"),
    _on(_MOVING, "up", "up,k", "one line up"),
    _on(_MOVING, "page_down", "pagedown,ctrl+d", "one page down"),
    _on(_MOVING, "page_up", "pageup,ctrl+u", "one page up"),
    _on(_MOVING, "first", "home,g", "to the first line"),
    _on(_MOVING, "last", "end,G", "to the last line"),
    _on("detail lines listing audit", "back", "left", "to the screen below, as Esc"),
    _on("table", "detail", "enter,t", "budgets, both facts and story of a row"),
    _on("table detail", "question", "o", "open the question, or ask for one"),
    _on("table", "filter", "slash", "narrow the rows"),
    _on("table", "sort", "s", "sort, then a letter"),
    _on("table", "reverse", "S", "reverse the order"),
    _on("table", "pause", "p", "pause the screen, or go on"),
    _on("table", "view_open", "1", "the view of what is live or asks"),
    _on("table", "view_needs_you", "2", "the view of what needs you"),
    _on("table", "view_unknown", "3", "the view of unknown states"),
    _on("table", "view_low", "4", "the view of budgets that run low"),
    _on("table", "view_failed", "5", "the view of failed jobs"),
    _on("table", "view_done", "6", "the view of what has ended and asks nothing"),
    _on("table", "view_marked", "7", "the view of marked rows"),
    _on("table", "mark", "space", "mark a row, or not any more"),
    _on("table", "unmark", "U", "unmark all rows"),
    _on("table", "pin", "asterisk", "pin a row on top, or not any more"),
    _on("table detail lines listing audit", "next_match", "n", "to the next match"),
    _on("table detail lines listing audit", "previous_match", "N", "to the previous match"),
    _on("table detail", "copy_id", "c", "send the id to the clipboard"),
    _on("table detail", "copy_detail", "C", "send the detail to the clipboard"),
    _on("table", "export", "x", "export the view as JSON lines"),
    _on("table", "export_csv", "X", "export the view as CSV"),
    _on("detail lines listing audit", "search", "slash", "search what stands here"),
    _on("lines listing audit", "copy_all", "C", "send what stands here to the clipboard"),
    _on("queue", "open_card", "enter", "open the card"),
    _on("queue", "queue_detail", "t", "detail of the row"),
    _on("lines listing audit", "read_anew", "r", "read anew"),
    _on("audit", "verify", "p", "prove the chain, beside everything else"),
    _on("audit", "whole", "enter", "hashes and the signed note whole, or short"),
    _on("audit", "export_audit", "x", "export the evidence file"),
    _on("listing", "open_row", "enter", "the row whole"),
    _on("listing", "open_question", "o", "open the question of the row"),
    _on("listing", "end_session", "D", "end the sessions of the credential at once"),
    _on("themes", "keep_theme", "enter", "keep the theme"),
)
ACTIONS: Final[dict[str, Named]] = {each.name: each for each in _ALL}

FIXED: Final[dict[str, str]] = {
    "escape": "always leads back",
    "ctrl+c": "always asks to quit",
    "ctrl+q": "always asks to quit",
    "ctrl+p": "always opens the palette",
    "ctrl+i": "is Tab to a terminal",
    "ctrl+m": "is Enter to a terminal",
    "ctrl+j": "is Enter to some terminals",
}
"""Keys that no file can bind, and why."""
CARD_KEYS: Final = frozenset("123456789abdefhmuvwz")
"""Keys that decide on a card or write its note: digits choose, letters confirm. They do nothing else anywhere, but the
digits that the views have had from the beginning."""

_NAMED: Final = {
    **{name: name for name in ("up", "down", "left", "right", "home", "end", "space", "enter", "tab", "backspace")},
    **{name: name for name in ("delete", "insert", "pageup", "pagedown", "escape")},
    **{f"f{number}": f"F{number}" for number in range(1, 25)},
    "home": "Home",
    "end": "End",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "enter": "Enter",
    "tab": "Tab",
    "escape": "Esc",
    "delete": "Delete",
    "insert": "Insert",
    "backspace": "Backspace",
}
"""Keys that type nothing, by the names of their events -> as they are shown."""
_SYNONYMS: Final = {"esc": "escape", "return": "enter", "pgup": "pageup", "pgdn": "pagedown", "del": "delete"}
_RENAMED: Final = {
    "solidus": "slash",
    "reverse_solidus": "backslash",
    "commercial_at": "at",
    "hyphen_minus": "minus",
    "plus_sign": "plus",
    "low_line": "underscore",
}
_PUNCTUATION: Final = {character: "" for character in map(chr, range(33, 127)) if not character.isalnum()}


def _event_name(character: str) -> str:
    """The name of the event of a printable ASCII *character*."""
    if character.isalnum():
        return character
    name = unicodedata.name(character).lower().replace("-", "_").replace(" ", "_")
    return _RENAMED.get(name, name)


_CHARACTERS: Final = {_event_name(character): character for character in _PUNCTUATION}
"""`slash` -> `/`."""
MODIFIERS: Final = ("ctrl+", "alt+")


def key_name(written: str) -> str | None:
    """The name of the event of a key as a person writes it: `/`, `slash`, `G`, `ctrl+x`, `F5`, `PgDn`; None: no key.

    `shift+g` is no name (the key is `G`), nor is a key that a terminal does not tell from another (`ctrl+G`).
    """
    if len(written) == 1:
        if written == " ":
            return "space"
        return _event_name(written) if written.isascii() and written.isprintable() else _letter(written)
    lowered = written.lower()
    lowered = _SYNONYMS.get(lowered, lowered)
    if lowered in _NAMED or lowered in _CHARACTERS:
        return lowered
    for modifier in MODIFIERS:
        rest = written[len(modifier) :]
        if lowered.startswith(modifier) and len(rest) == 1 and rest.isascii() and rest.islower():
            return f"{modifier}{rest}"
    return None


def _letter(character: str) -> str | None:
    """A letter of another script; its event has the character as its name."""
    return character if character.isalnum() else None


def shown(key: str) -> str:
    """The key of an event as a person reads it: `/`, `Enter`, `ctrl+x`, `G`."""
    return _CHARACTERS.get(key) or _NAMED.get(key) or key


def known_keys() -> list[str]:
    """Names that a file may use, for near matches."""
    return [*_NAMED, *_CHARACTERS, *(f"ctrl+{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
