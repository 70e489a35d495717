"""Patterns that cannot run away.

Job: globs (`False/*`) and a safe subset of regular expressions, compiled once. Must not know: what is matched.
The subset: no group repeated, no look-around, no back-reference, few variable quantifiers, few ways through what is
optional or alternative; and a subject is read only where the most that it can cost is within a bound. What a match can
cost is known before it begins, so that whoever matches many texts of one answer can count (spec H7, "regex bomb").
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

MAX_PATTERN: Final = 200
MAX_SUBJECT: Final = 2_048
MAX_STARS: Final = 3
MAX_VARIABLE: Final = 3
MAX_UNBOUNDED: Final = 3
MAX_REPEAT: Final = 256
MAX_WAYS: Final = 128
"""Ways through a pattern: each `?` doubles them, a group multiplies them by its alternatives; all may be tried."""
MAX_COST: Final = 1 << 24
"""What one match may cost at most; measured, one unit takes 1 to 5 ns. Longer subjects are not read."""

_QUANTIFIER: Final = re.compile(r"[*+?]|\{([0-9]{0,5})(?:(,)([0-9]{0,5}))?\}")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_WRITTEN: Final = re.compile(r"\\[xuUN]")
"""Characters written by number or name."""
_SAMPLES: Final = (*map(chr, range(128)), "\u0100")
"""Under re.ASCII every character beyond ASCII is matched as every other, unless a pattern names one."""


class Pattern:
    """A compiled pattern; subjects longer than *longest* never match.

    *ways*, *open_ends*: ways through what is optional or alternative, and repetitions whose end the text leaves open.
    """

    __slots__ = ("_match", "_power", "_ways", "longest", "source")

    def __init__(self, source: str, compiled: re.Pattern[str], ways: int = 1, open_ends: int = 0) -> None:
        self.source = source
        self._ways = ways
        self._power = open_ends + 1
        self.longest = min(MAX_SUBJECT, int((MAX_COST / ways) ** (1 / self._power) + 1e-9))
        self._match = compiled.fullmatch

    def cost(self, length: int) -> int:
        """The most that matching a subject of *length* characters costs, whatever it holds; in units of 1 to 5 ns."""
        return self._ways * length**self._power if length <= self.longest else 0

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
    first, *rest = ("".join("." if c == "?" else re.escape(c) for c in part) for part in re.split(r"\*+", text))
    # what stands between two stars is taken where it comes first, for good: a later place could not serve better
    inner = "".join(f"(?>.*?{part})" for part in rest[:-1])
    compiled = f"{first}{inner}.*{rest[-1]}" if rest else first
    # each place of the text is tried once, against at most the whole pattern
    return Pattern(text, re.compile(compiled, re.DOTALL | (re.IGNORECASE if fold_case else 0)), len(text) or 1)


def regex(text: str) -> Pattern:
    """A regular expression of the safe subset, matched against the whole subject.

    Raises:
        ValueError: what is outside the subset, in words.
    """
    if len(text) > MAX_PATTERN:
        raise ValueError(f"pattern longer than {MAX_PATTERN} characters")
    tokens, ways = _check_subset(text)
    try:
        return Pattern(text, re.compile(text, re.ASCII), ways, _open_ends(text, tokens))
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


class _Token(NamedTuple):
    """One part of a pattern: what stands for one character, `(`, `|`, `)`; how often at least, and whether variable."""

    text: str
    least: int = 1
    variable: bool = False


def _open_ends(text: str, tokens: list[_Token]) -> int:
    """How many of the repetitions can end at several places of one text with what follows still fitting.

    A repetition that must be followed by a character which it cannot itself take ends at one place.
    """
    found = 0
    for n, token in enumerate(tokens):
        if not token.variable:
            continue
        after = next((one for one in tokens[n + 1 :] if one.text != ")"), None)
        if after is None:
            continue  # the end of the text is one place
        if after.least == 0 or after.text in ("(", "|") or _WRITTEN.search(text):
            found += 1
            continue
        taken, next_ = _characters(token.text), _characters(after.text)
        # what is not known by samples may take anything
        found += not taken or not next_ or not taken.isdisjoint(next_)
    return found


@lru_cache(maxsize=512)
def _characters(token: str) -> frozenset[str]:
    """The sample characters that *token* takes; none where it takes no character at all."""
    if token == "^" or not token.isascii():
        return frozenset()
    try:
        taken = re.compile(token if len(token) > 1 or token == "." else re.escape(token), re.ASCII)
    except re.error:
        return frozenset()
    return frozenset(char for char in _SAMPLES if taken.fullmatch(char))


def _check_subset(text: str) -> tuple[list[_Token], int]:
    """The parts of the pattern, and how many ways lead through it. Raises ValueError."""
    variable = unbounded = at = 0
    ways = _Ways()
    tokens: list[_Token] = []
    previous = ""
    while at < len(text):
        char = text[at]
        found = _QUANTIFIER.match(text, at)
        if char == "\\":
            if text[at + 1 : at + 2].isdigit():
                raise ValueError("back-references are not allowed in patterns")
            tokens.append(_Token(text[at : at + 2]))
            previous, at = "atom", at + 2
        elif char == "[":
            end = _CLASS.match(text, at)
            if end is None:
                raise ValueError("a character class is not closed")
            tokens.append(_Token(end.group()))
            previous, at = "atom", end.end()
        elif text.startswith("(?", at) and not text.startswith("(?:", at):
            raise ValueError("look-around, flags and named groups are not allowed in patterns")
        elif found and previous:
            least, comma, most = found.groups()
            if previous == "quantifier" or (previous == "group" and found.group() != "?"):
                raise ValueError("repeating a group or a repetition is not allowed in patterns")
            if int(most or least or 0) > MAX_REPEAT:
                raise ValueError(f"a repetition of more than {MAX_REPEAT} is not allowed")
            varies = found.group() != "?" and (comma is not None or least is None)
            unbounded += found.group() in "*+" or (comma is not None and not most)
            variable += varies
            ways.read(found.group())
            tokens[-1] = _Token(tokens[-1].text, int(least or 0) if least is not None else found.group() == "+", varies)
            previous, at = "quantifier", found.end()
        else:
            ways.read(char)
            tokens.append(_Token("^" if char in "^$" else char))
            previous = "group" if char == ")" else "" if char in "(|^" else "atom"
            at += 3 if text.startswith("(?:", at) else 1
    if variable > MAX_VARIABLE or unbounded > MAX_UNBOUNDED:
        raise ValueError(f"more than {MAX_UNBOUNDED} open or {MAX_VARIABLE} variable repetitions in a pattern")
    if ways.total() > MAX_WAYS:
        raise ValueError(f"more than {MAX_WAYS} ways through what is optional or alternative in a pattern")
    return tokens, ways.total()
