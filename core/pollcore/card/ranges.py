"""Thousands of figures as one range, thousands of sentences as one.

Job: pure: numbers, times and texts -> few words that hold for all of them. Must not know: what they are about.
Sentences that differ in nothing but times, spans and numbers are told once, with `A to B` where they differ.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from pollcore.escalation.situation import when
from pollcore.facts import DAY, HOUR, MINUTE, SECOND, Instant, iso

MAX_WORDINGS: Final = 4
"""Sentences told one by one; how many more there are is told, too."""
_SPAN: Final = {"day": DAY, "hour": HOUR, "minute": MINUTE, "second": SECOND}
_TOKEN: Final = re.compile(
    r"(?P<time>(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d UTC)"
    r"|(?P<span>\b\d+ (?:day|hour|minute|second)s?(?: \d+ (?:hour|minute|second)s?)?\b)"
    r"|(?<![\w.:-])(?P<number>\d+)(?![\w.:-])"
)


def figures(values: Iterable[int]) -> str:
    """`12`, `3 to 12`; nothing: `none`."""
    found = set(values)
    if not found:
        return "none"
    low, high = min(found), max(found)
    return str(low) if low == high else f"{low} to {high}"


def times(values: Iterable[Instant], now: Instant) -> str:
    """`10:58:00 UTC`, `10:58:00 UTC to 11:04:00 UTC`; nothing: `none`."""
    found = set(values)
    if not found:
        return "none"
    low, high = when(min(found), now), when(max(found), now)
    return low if low == high else f"{low} to {high}"


def counted(values: Iterable[str], *, limit: int = MAX_WORDINGS) -> str:
    """`timeout (2,960), none (40)`: the most frequent first; what every one has, without a number."""
    found = Counter(values)
    if len(found) == 1:
        return next(iter(found))
    listed = [f"{value} ({count:,})" for value, count in _ordered(found)[:limit]]
    if len(found) > limit:
        listed.append(f"{len(found) - limit:,} more")
    return ", ".join(listed)


def merged(texts: Mapping[str, int], now: Instant) -> list[tuple[str, int]]:
    """Sentences with how many say them -> fewer sentences, those alike but for times, spans and numbers as one.

    The most frequent first. What is merged differs in the places of `A to B` alone.
    """
    alike: dict[str, list[tuple[str, int]]] = {}
    for text, count in texts.items():
        alike.setdefault(_TOKEN.sub(_kind, text), []).append((text, count))
    told = Counter[str]()
    for variants in alike.values():
        told[_one([text for text, _ in variants], now)] += sum(count for _, count in variants)
    return _ordered(told)


def _ordered(found: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(found.items(), key=lambda each: (-each[1], each[0]))


def _kind(token: re.Match[str]) -> str:
    return f"\x00{token.lastgroup}\x00"


def _one(texts: list[str], now: Instant) -> str:
    if len(texts) == 1:
        return texts[0]
    columns = zip(*([match.group() for match in _TOKEN.finditer(text)] for text in texts), strict=True)
    size = _Size(iso(now)[:10])
    ends = [(min(found, key=size), max(found, key=size)) for found in map(set, columns)]
    slots = iter(low if low == high else f"{low} to {high}" for low, high in ends)
    return _TOKEN.sub(lambda _: next(slots), texts[0])


class _Size:
    """The size of a token: times by day and clock, spans in ms, numbers."""

    def __init__(self, today: str) -> None:
        self._today = today

    def __call__(self, token: str) -> tuple[int, str]:
        if token.endswith("UTC"):
            return 0, token if len(token) > len("00:00:00 UTC") else f"{self._today} {token}"
        words = token.split()
        if len(words) == 1:
            return int(token), ""
        pairs = zip(words[::2], words[1::2], strict=True)
        return sum(int(count) * _SPAN[unit.rstrip("s")] for count, unit in pairs), ""
