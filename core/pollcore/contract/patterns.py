"""Patterns that cannot run away.

Job: globs (`False/*`) and a safe subset of regular expressions, compiled once. Must not know: what is matched.
The subset: no group repeated, no look-around, no back-reference, few variable quantifiers, few ways through what is
optional or alternative, short subjects; so the cost is a small power of a small number (reliability section 13,
"regex bomb").
"""

from __future__ import annotations

import re
from typing import Final

MAX_PATTERN: Final = 200
MAX_SUBJECT: Final = 2_048
MAX_STARS: Final = 3
MAX_VARIABLE: Final = 3
MAX_UNBOUNDED: Final = 3
MAX_SHORT: Final = 512
"""What a pattern with three open repetitions reads at most: its cost grows with the cube of the length."""
MAX_REPEAT: Final = 256
MAX_WAYS: Final = 128
"""Ways through a pattern: each `?` doubles them, a group multiplies them by its alternatives; all may be tried."""
FEW_WAYS: Final = 8
"""With more of them, what a pattern with two or three variable repetitions reads is shorter still."""
SHORTER: Final = {2: MAX_SHORT, 3: 128}

_QUANTIFIER: Final = re.compile(r"[*+?]|\{([0-9]{0,5})(?:(,)([0-9]{0,5}))?\}")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")


class Pattern:
    """A compiled pattern; subjects longer than *longest* never match."""

    __slots__ = ("_match", "longest", "source")

    def __init__(self, source: str, compiled: re.Pattern[str], longest: int = MAX_SUBJECT) -> None:
        self.source = source
        self.longest = longest
        self._match = compiled.fullmatch

    def matches(self, subject: str) -> bool:
        return len(subject) <= self.longest and self._match(subject) is not None

    def first_group(self, subject: str) -> str | None:
        """What the first group matched; the whole when the pattern has no group; None: no match."""
        found = self._match(subject) if len(subject) <= self.longest else None
        if found is None:
            return None
        return found.group(1) if found.re.groups else found.group(0)

    def __repr__(self) -> str:
        return f"Pattern({self.source!r})"


def glob(text: str, *, fold_case: bool = False) -> Pattern:
    """`*` stands for any characters, `?` for one; everything else for itself.

    Raises:
        ValueError: too long, or more than three stars.
    """
    if len(text) > MAX_PATTERN:
        raise ValueError(f"pattern longer than {MAX_PATTERN} characters")
    if text.count("*") > MAX_STARS:
        raise ValueError(f"more than {MAX_STARS} stars in a pattern")
    longest = MAX_SHORT if text.count("*") >= MAX_UNBOUNDED else MAX_SUBJECT
    parts = (".*" if char == "*" else "." if char == "?" else re.escape(char) for char in re.sub(r"\*+", "*", text))
    return Pattern(text, re.compile("".join(parts), re.DOTALL | (re.IGNORECASE if fold_case else 0)), longest)


def regex(text: str) -> Pattern:
    """A regular expression of the safe subset, matched against the whole subject.

    Raises:
        ValueError: what is outside the subset, in words.
    """
    if len(text) > MAX_PATTERN:
        raise ValueError(f"pattern longer than {MAX_PATTERN} characters")
    variable, ways = _check_subset(text)
    longest = MAX_SHORT if variable >= MAX_UNBOUNDED else MAX_SUBJECT
    if ways > FEW_WAYS:
        longest = SHORTER.get(variable, longest)
    try:
        return Pattern(text, re.compile(text, re.ASCII), longest)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"no regular expression: {error}") from None


class _Ways:
    """How many ways lead through what was read so far."""

    def __init__(self) -> None:
        self._open = [[0, 1]]
        """Of each group that is open: ways of its earlier alternatives, and of the present one."""

    def read(self, char: str) -> None:
        """One of `(`, `|`, `)`, `?` (as a quantifier); others change nothing."""
        if char == "(":
            self._open.append([0, 1])
        elif char == "|":
            self._open[-1] = [sum(self._open[-1]), 1]
        elif char == "?":
            self._open[-1][1] *= 2
        elif char == ")" and len(self._open) > 1:
            ways = sum(self._open.pop())
            self._open[-1][1] *= ways

    def total(self) -> int:
        return sum(self._open[0])


def _check_subset(text: str) -> tuple[int, int]:
    """How many variable repetitions the pattern has, and how many ways lead through it. Raises ValueError."""
    variable = unbounded = at = 0
    ways = _Ways()
    previous = ""
    while at < len(text):
        char = text[at]
        found = _QUANTIFIER.match(text, at)
        if char == "\\":
            if text[at + 1 : at + 2].isdigit():
                raise ValueError("back-references are not allowed in patterns")
            previous, at = "atom", at + 2
        elif char == "[":
            end = _CLASS.match(text, at)
            if end is None:
                raise ValueError("a character class is not closed")
            previous, at = "atom", end.end()
        elif text.startswith("(?", at) and not text.startswith("(?:", at):
            raise ValueError("look-around, flags and named groups are not allowed in patterns")
        elif found and previous:
            least, comma, most = found.groups()
            if previous == "quantifier" or (previous == "group" and found.group() != "?"):
                raise ValueError("repeating a group or a repetition is not allowed in patterns")
            if int(most or least or 0) > MAX_REPEAT:
                raise ValueError(f"a repetition of more than {MAX_REPEAT} is not allowed")
            unbounded += found.group() in "*+" or (comma is not None and not most)
            variable += found.group() != "?" and (comma is not None or least is None)
            ways.read(found.group())
            previous, at = "quantifier", found.end()
        else:
            ways.read(char)
            previous = "group" if char == ")" else "" if char in "(|^" else "atom"
            at += 3 if text.startswith("(?:", at) else 1
    if variable > MAX_VARIABLE or unbounded > MAX_UNBOUNDED:
        raise ValueError(f"more than {MAX_UNBOUNDED} open or {MAX_VARIABLE} variable repetitions in a pattern")
    if ways.total() > MAX_WAYS:
        raise ValueError(f"more than {MAX_WAYS} ways through what is optional or alternative in a pattern")
    return variable, ways.total()
