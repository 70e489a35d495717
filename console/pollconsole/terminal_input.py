"""From the bytes of a terminal to events, whatever the bytes are.

One job: cut the input stream into whole sequences, let Textual's parser name those it knows, drop and count the rest.
Textual's own reader is ended by odd input (sub-fields of the kitty protocol, huge code points) and turns unknown
answers of a terminal into key presses; here neither can happen: a sequence that is no key is never spelled out as keys.
Knows no file descriptor, no clock but the instants given to it, no guard and no app.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

import msgspec
from textual import events
from textual._xterm_parser import XTermParser
from textual.message import Message

ESCAPE_WAIT: Final = 0.1
"""Seconds after which a lone escape byte is the Esc key, and a half sequence is dropped."""
PASTE_WAIT: Final = 2.0
"""Seconds without a byte after which a paste that was never ended is ended."""
MAX_SEQUENCE: Final = 64
"""Characters of one control sequence; a longer one is dropped to its end."""
MAX_STRING: Final = 4096
"""Characters of a control string (an answer like ``ESC P ... ESC \\``); a longer one is dropped so far."""
MAX_PASTE: Final = 1 << 20
"""Characters kept of one paste."""
MAX_CELLS: Final = 2000
"""Columns and rows that a resize report may claim."""

_ESC = "\x1b"
_PASTE_START = "\x1b[200~"
_PASTE_END = "\x1b[201~"
_RE_REPORT = re.compile(r"\x1b\[(\d{1,5});(\d{1,5})R")
_RE_KITTY = re.compile(r"\x1b\[(\d*)(:[\d:]*)?(?:;(\d*)(:[\d:]*)?(?:;([\d:]*))?)?([u~ABCDEFHPQRS])")
_RE_RESIZE = re.compile(r"\x1b\[48;(\d+)[\d:]*;(\d+)[\d:;]*t")
_RE_MODE_REPORT = re.compile(r"\x1b\[\?\d+;\d+\$y")
_SHIFT_AND_LOCKS = 0b11000001
_STRING_STARTS = "P]_^X"


class FenceReply(events.Event, bubble=False):
    """A cursor report: the terminal says that its cursor is at *row*, *column* (both from 1)."""

    def __init__(self, row: int, column: int) -> None:
        self.row = row
        self.column = column
        super().__init__()


class Stray(events.Event, bubble=False):
    """Bytes that are no key, mouse event, paste or awaited answer; dropped."""


class Kind(Enum):
    CHARACTER = auto()
    ESCAPE = auto()
    ALT = auto()
    SEQUENCE = auto()
    PASTE = auto()
    JUNK = auto()


class Token(msgspec.Struct, frozen=True):
    """One whole unit of input."""

    kind: Kind
    text: str


class Parsed(msgspec.Struct, frozen=True):
    """One event and how it came. ``isolated``: it was all that its read held, and no modifier but shift was down."""

    message: Message
    isolated: bool


class Splitter:
    """Cuts decoded text into tokens; keeps what is not whole yet."""

    def __init__(self) -> None:
        self._buffer = ""
        self._paste: list[str] | None = None
        self._paste_length = 0

    @property
    def partial(self) -> bool:
        """Whether a sequence or a paste has begun and is not whole."""
        return bool(self._buffer) or self._paste is not None

    @property
    def wait(self) -> float:
        """After how many seconds without a byte `flush` should be called."""
        return PASTE_WAIT if self._paste is not None else ESCAPE_WAIT

    def feed(self, text: str) -> Iterator[Token]:
        for character in text:
            if self._paste is not None:
                yield from self._pasted(character)
            else:
                yield from self._typed(character)

    def flush(self) -> Iterator[Token]:
        """Nothing follows: what is there is all there is."""
        if self._paste is not None:
            yield self._end_paste(self._buffer)
        elif self._buffer:
            text, self._buffer = self._buffer, ""
            yield Token(Kind.ESCAPE, text) if text == _ESC else Token(Kind.JUNK, text)

    def _pasted(self, character: str) -> Iterator[Token]:
        # `_buffer` holds a beginning of the end mark; everything else is pasted text, escapes included.
        self._buffer += character
        while not _PASTE_END.startswith(self._buffer):
            self._keep(self._buffer[0])
            self._buffer = self._buffer[1:]
        if self._buffer == _PASTE_END:
            yield self._end_paste("")

    def _keep(self, text: str) -> None:
        if self._paste is not None and self._paste_length < MAX_PASTE:
            self._paste.append(text)
            self._paste_length += len(text)

    def _end_paste(self, rest: str) -> Token:
        self._keep(rest)
        text = "".join(self._paste or ())
        self._paste, self._paste_length, self._buffer = None, 0, ""
        return Token(Kind.PASTE, text)

    def _typed(self, character: str) -> Iterator[Token]:
        buffer = self._buffer
        if not buffer:
            if character == _ESC:
                self._buffer = character
            else:
                yield Token(Kind.CHARACTER, character)
            return
        if buffer == _ESC:
            if character == _ESC:
                yield Token(Kind.ESCAPE, _ESC)
            elif character in "[O" or character in _STRING_STARTS:
                self._buffer = buffer + character
            else:
                self._buffer = ""
                yield Token(Kind.ALT, character)
            return
        if buffer[1] in _STRING_STARTS:
            yield from self._in_string(character)
        else:
            yield from self._in_sequence(character)

    def _in_string(self, character: str) -> Iterator[Token]:
        self._buffer += character
        if character == "\x07" or self._buffer.endswith("\x1b\\") or len(self._buffer) > MAX_STRING:
            text, self._buffer = self._buffer, ""
            yield Token(Kind.JUNK, text)

    def _in_sequence(self, character: str) -> Iterator[Token]:
        buffer = self._buffer
        if character < " " or character == "\x7f" or character > "~":
            self._buffer = ""
            yield Token(Kind.JUNK, buffer)
            yield from self._typed(character)
            return
        self._buffer = buffer = buffer + character
        if len(buffer) > MAX_SEQUENCE:
            self._buffer = ""
            yield Token(Kind.JUNK, buffer)
        elif buffer[1] == "O":
            done = not character.isdigit()
        elif buffer.startswith("\x1b[M"):
            done = len(buffer) == 6
        elif buffer.startswith("\x1b[["):
            done = len(buffer) == 4
        else:
            done = "@" <= character <= "~"
        if self._buffer and done:
            self._buffer = ""
            if buffer == _PASTE_START:
                self._paste = []
            elif buffer != _PASTE_END:
                yield Token(Kind.SEQUENCE, buffer)
            else:
                yield Token(Kind.JUNK, buffer)


class Reader:
    """Bytes in, events out; never raises on input. ``dropped`` counts the sequences that were thrown away."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._splitter = Splitter()
        self._parser = XTermParser()
        self.dropped = 0

    @property
    def partial(self) -> bool:
        return self._splitter.partial or bool(self._decoder.getstate()[0])

    @property
    def wait(self) -> float:
        return self._splitter.wait

    def feed(self, data: bytes) -> list[Parsed]:
        """What one read of the terminal holds."""
        return self._parsed(list(self._splitter.feed(self._decoder.decode(data))))

    def flush(self) -> list[Parsed]:
        """What is left of earlier reads, when nothing followed for `wait` seconds."""
        return self._parsed(list(self._splitter.flush()))

    def _parsed(self, tokens: list[Token]) -> list[Parsed]:
        alone = len(tokens) == 1 and not self.partial
        parsed: list[Parsed] = []
        for token in tokens:
            try:
                messages, plain = self._messages(token)
            except Exception:  # Textual's parser raises whatever it likes on odd input; one sequence is the damage
                messages, plain = [], False
                self._new_parser()
            if not messages and not _RE_MODE_REPORT.fullmatch(token.text):
                self.dropped += 1
                messages = [Stray()]
            isolated = alone and plain and len(messages) == 1
            parsed.extend(Parsed(message, isolated) for message in messages)
        return parsed

    def _messages(self, token: Token) -> tuple[list[Message], bool]:
        """The events of one token, and whether it was pressed without a modifier that types nothing."""
        if token.kind is Kind.PASTE:
            return [events.Paste(token.text.replace("\x00", ""))], False
        if token.kind is Kind.ESCAPE:
            return [events.Key("escape", _ESC)], True
        if token.kind is Kind.JUNK:
            return [], False
        if token.kind is Kind.CHARACTER:
            return list(self._parser.feed(token.text)), True
        if token.kind is Kind.ALT:
            return [_with_alt(message) for message in self._parser.feed(token.text)], False
        return self._sequence(token.text)

    def _sequence(self, text: str) -> tuple[list[Message], bool]:
        if report := _RE_REPORT.fullmatch(text):
            return [FenceReply(int(report[1]), int(report[2]))], False
        plain = True
        if key := _RE_KITTY.fullmatch(text):
            if key[2] or key[4]:
                return [], False  # alternate keys, repeats, releases: never asked for
            plain = not (int(key[3] or "1") - 1) & ~_SHIFT_AND_LOCKS
        elif (size := _RE_RESIZE.fullmatch(text)) and not all(0 < int(side) <= MAX_CELLS for side in size.groups()):
            return [], False
        messages = list(self._parser.feed(text))
        if not messages:
            self._new_parser()  # it may still wait for more of a sequence that is whole
        return messages, plain

    def _new_parser(self) -> None:
        old, self._parser = self._parser, XTermParser()
        self._parser.mouse_pixels = old.mouse_pixels
        self._parser.terminal_size = old.terminal_size
        self._parser.terminal_pixel_size = old.terminal_pixel_size
        self._parser.last_x, self._parser.last_y = old.last_x, old.last_y


def _with_alt(message: Message) -> Message:
    if isinstance(message, events.Key):
        return events.Key(f"alt+{message.key}", None)
    return message
