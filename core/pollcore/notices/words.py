"""The words of a message.

Job: items -> title and body of plain ASCII. Must not know: addresses, services. No provider text, no label, no link:
names of ours, reasons, counts and ids alone, each reduced to characters that no service takes for markup or a link.
Source: spec K1, G5 (a message cannot grant, and says where the answer is given), G4.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pollcore.facts import Instant, iso
from pollcore.notices.model import Item, NoticeKind

MAX_LINES: Final = 12
"""Items that one message tells."""
MAX_NAMED: Final = 5
"""Operations that one line names."""
MAX_WORD: Final = 64
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_. -]")
_ORDER: Final = (NoticeKind.EXPIRING_CARD, NoticeKind.NEW_CARD, NoticeKind.DEADLINE_NEAR, NoticeKind.FINISHED)
_HEADS: Final = {
    NoticeKind.EXPIRING_CARD: "card expires",
    NoticeKind.NEW_CARD: "decision wanted",
    NoticeKind.DEADLINE_NEAR: "deadline near",
    NoticeKind.FINISHED: "finished",
}


def message(items: Sequence[Item], more: int, host: str) -> tuple[str, str]:
    """Title and body. *more*: things that did not fit among the items."""
    ordered = sorted(items, key=lambda item: (_ORDER.index(item.kind), item.at, item.key))
    return f"pollconsole on {plain(host)}: {', '.join(_counted(ordered))}", "\n".join(_lines(ordered, more, host))


def _counted(items: Sequence[Item]) -> Iterator[str]:
    cards = sum(item.kind in (NoticeKind.NEW_CARD, NoticeKind.EXPIRING_CARD) for item in items)
    if cards:
        yield f"{cards} decision{'s wait' if cards != 1 else ' waits'}"
    for kind, one, many in (
        (NoticeKind.DEADLINE_NEAR, "deadline is near", "deadlines are near"),
        (NoticeKind.FINISHED, "operation finished", "operations finished"),
    ):
        count = sum(item.count for item in items if item.kind is kind)
        if count:
            yield f"{count} {one if count == 1 else many}"


def _lines(items: Sequence[Item], more: int, host: str) -> Iterator[str]:
    for item in items[:MAX_LINES]:
        yield _line(item)
    rest = len(items) - MAX_LINES
    if rest > 0 or more:
        yield f"and {max(rest, 0) + more} more"
    yield f"The answer is given in the console on {plain(host)}, by keypress; not by a reply to this."


def _line(item: Item) -> str:
    when = f" at {iso(_second(item.until))}" if item.until is not None else ""
    if item.kind is NoticeKind.DEADLINE_NEAR and item.count > 1:
        when = f", the first{when}"
    parts = [plain(item.provider)] if item.provider else []
    parts += [plain(item.what)] if item.what else []
    if item.count > 1:
        parts.append(f"{item.count} operations")
    named = ", ".join(plain(one) for one in item.ids[:MAX_NAMED])
    more = ", ..." if item.count > MAX_NAMED and named else ""
    return f"{_HEADS[item.kind]}{when}: {', '.join(parts)}" + (f" ({named}{more})" if named else "")


def _second(at: Instant) -> Instant:
    return Instant(at // 1_000 * 1_000)


def plain(text: str) -> str:
    """Letters, digits, `_`, `.`, `-` and spaces; anything else becomes `?`."""
    kept = _STRANGE.sub("?", text)
    return kept if len(kept) <= MAX_WORD else f"{kept[:MAX_WORD]}..."
