"""A copy on its way to the clipboard of the terminal: OSC 52, wrapped for whatever stands between.

Job: pure: text and what stands between -> the sequence to write, or why there is none, and what to say. Must not know:
widgets, files, processes. A terminal says nothing back, so a copy is "sent", never "copied".

Source: xterm's control sequences, OSC 52; tmux(1), options `set-clipboard` and `allow-passthrough`; screen(1), control
sequence `DCS string ST`.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from pollconsole.safe import safe
from pollconsole.terminal_output import MAX_CLIPBOARD, SCREEN_CHUNK

MAX_COPIED: Final = MAX_CLIPBOARD // 4 * 3
"""Bytes of one copy by OSC 52."""
_ON: Final = frozenset({"1", "on", "all", ""})
"""`allow-passthrough` that lets through; a tmux before 3.3 has no such option and lets all through."""


class Between(StrEnum):
    """What stands between this program and the terminal."""

    NOTHING = "nothing"
    TMUX = "tmux"
    SCREEN = "screen"


class Tmux(msgspec.Struct, frozen=True):
    """What tmux says of two of its options."""

    set_clipboard: str
    allow_passthrough: str


class Way(msgspec.Struct, frozen=True):
    """*sequence*: what to write; empty: nothing gets through. *said*: how it goes, or why it does not."""

    sequence: str
    said: str
    sure: bool = True
    """False: nobody knows whether it gets through, so that a file is worth writing, too."""


def between(environ: Mapping[str, str]) -> Between:
    """What stands between, by the variables that tmux and screen set."""
    if environ.get("TMUX"):
        return Between.TMUX
    if environ.get("STY"):
        return Between.SCREEN
    return Between.NOTHING


def harmless(text: str, limit: int) -> str:
    """*text* as it may be pasted into a shell: nothing in it presses keys there."""
    return safe(text, limit, multiline=True)


def too_long(text: str) -> str | None:
    """Why OSC 52 does not take *text*; None: it does. Nothing is cut silently."""
    size = max(len(text), len(harmless(text, MAX_COPIED + 1).encode()))
    return None if size <= MAX_COPIED else f"{size:,} bytes are more than the {MAX_COPIED:,} that terminals take"


def way(text: str, stands: Between, tmux: Tmux | None = None) -> Way:
    """How *text*, short enough, gets to the clipboard. *tmux*: its answer, None where it gave none."""
    plain = f"\x1b]52;c;{base64.b64encode(harmless(text, MAX_COPIED).encode()).decode()}\x07"
    if stands is Between.NOTHING:
        return Way(plain, "sent to the terminal's clipboard")
    if stands is Between.SCREEN:
        return Way(_through_screen(plain), "sent through screen to the terminal's clipboard")
    if tmux is None:
        return Way(plain, "sent to tmux, which did not say whether it passes it on", sure=False)
    if tmux.set_clipboard == "on":
        return Way(plain, "sent to tmux, which keeps it and hands it to the terminal")
    if tmux.allow_passthrough in _ON:
        return Way(_through_tmux(plain), "sent through tmux to the terminal's clipboard")
    return Way("", "tmux lets no copy through: 'tmux set -g set-clipboard on' does, or allow-passthrough")


def _through_tmux(sequence: str) -> str:
    doubled = sequence.replace("\x1b", "\x1b\x1b")
    return f"\x1bPtmux;{doubled}\x1b\\"


def _through_screen(sequence: str) -> str:
    """In pieces: screen cuts a string that is longer than its buffer."""
    opening = "\x1b]52;c;"
    body = sequence[len(opening) : -1]
    pieces = [body[at : at + SCREEN_CHUNK] for at in range(0, len(body), SCREEN_CHUNK)] or [""]
    return "\x1bP" + opening + "\x1b\\\x1bP".join(pieces) + "\x07\x1b\\"
