"""Which known word did they mean?

Job: the nearest of some known words, as a hint to people. Must not know: what the words mean; nothing is ever
decided from likeness (spec S2).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MAX_WORD: Final = 64
"""Longer words get no hint: they are no spelling mistakes."""


def near(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs by case alone, else by one edit (`canceled`/`cancelled`); None: none does."""
    if not word or len(word) > MAX_WORD:
        return None
    folded = word.casefold()
    words = [other for other in known if other != word]
    for other in words:
        if other.casefold() == folded:
            return other
    for other in words:
        if one_edit(folded, other.casefold()):
            return other
    return None


def one_edit(left: str, right: str) -> bool:
    """Whether one inserted, dropped, changed letter or one swap of neighbours turns *left* into *right*."""
    if abs(len(left) - len(right)) > 1 or left == right:
        return left == right
    start = 0
    while start < min(len(left), len(right)) and left[start] == right[start]:
        start += 1
    a, b = left[start:], right[start:]
    if len(a) == len(b):
        return a[1:] == b[1:] or (len(a) > 1 and a[0] == b[1] and a[1] == b[0] and a[2:] == b[2:])
    return a[1:] == b if len(a) > len(b) else a == b[1:]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean "status"?)`, or the known words when few, or nothing."""
    words = sorted(known)
    found = near(word, words)
    if found is not None:
        return f' (did you mean "{found}"?)'
    return f" (known: {', '.join(words)})" if 0 < len(words) <= MAX_LISTED else ""


MAX_LISTED: Final = 14
