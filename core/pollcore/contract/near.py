"""Which known word did they mean?

Job: the nearest of some known words, as a hint to people. Must not know: what the words mean; nothing is ever
decided from likeness (spec S2).
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

MAX_WORD: Final = 64
"""Longer words get no hint: they are no spelling mistakes."""

_LOOKS: Final = str.maketrans(
    # Cyrillic, then Greek, then Latin letters of their own, as they look in lower case
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0451\u0455\u0456\u0457\u0458\u04bb\u0501\u051b\u051d"
    "\u03b1\u03b5\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03f2\u03f3"
    "\u0131\u0251\u0261\u1d0f",
    "abekmhopctyxesiijhdqwaenikvoptuxcjiago",
)
"""The letters that are most often taken for a Latin one; small on purpose: it makes hints, never decisions."""


def near(word: str, known: Iterable[str]) -> str | None:
    """The known word that differs by case alone, else only to a machine (`lookalike`), else by one edit
    (`canceled`/`cancelled`); None: none does."""
    if not word or len(word) > MAX_WORD:
        return None
    folded = word.casefold()
    words = [other for other in known if other != word]
    for other in words:
        if other.casefold() == folded:
            return other
    looks = skeleton(word)
    for other in words:
        if skeleton(other) == looks:
            return other
    for other in words:
        if one_edit(folded, other.casefold()):
            return other
    return None


def skeleton(word: str) -> str:
    """What *word* looks like: NFKC, lower case, invisible characters left out, lookalike letters as Latin ones."""
    plain = unicodedata.normalize("NFKC", word).casefold()
    return "".join(char for char in plain if unicodedata.category(char) != "Cf").translate(_LOOKS)


def lookalike(word: str, known: str) -> str | None:
    """Which characters make *word* another word than *known* though both look alike: `U+043E CYRILLIC SMALL LETTER O`.

    None: they differ visibly, or by case alone.
    """
    if word.casefold() == known.casefold() or skeleton(word) != skeleton(known):
        return None
    odd = [char for char in dict.fromkeys(word) if not char.isascii() and char not in known]
    named = [f"U+{ord(char):04X} {unicodedata.name(char, '')}".rstrip() for char in odd[:MAX_NAMED]]
    return ", ".join(named) or None


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
    """` (did you mean "status"?)`, or the known words when few, else those that are somewhat like it, or nothing."""
    words = sorted(known)
    found = near(word, words)
    if found is not None:
        return f' (did you mean "{found}"?)'
    if len(words) <= MAX_LISTED:
        return f" (known: {', '.join(words)})" if words else ""
    like = get_close_matches(word[: 2 * MAX_WORD], words, n=MAX_LIKE)
    return f" (did you mean {' or '.join(map(json.dumps, like))}?)" if like else ""


MAX_LISTED: Final = 14
MAX_LIKE: Final = 3
"""Words of a long list that are named as alike."""
MAX_NAMED: Final = 3
"""Odd characters that a hint names."""
