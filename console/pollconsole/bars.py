"""Counts over time as bars of text, one line an hour or a day.

Job: pure: labels and counts -> lines. Must not know: where counts come from, widgets. ASCII alone, so that it survives
every terminal, font and screen reader; the number stands beside each bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_ROWS: Final = 60
"""The newest rows; older ones are told as one line."""
WIDTH: Final = 40
"""Cells of the longest bar."""


def bars(rows: Sequence[tuple[str, int]], *, width: int = WIDTH, mark: str = "#") -> list[str]:
    """`03-02 10:00  ########  12`; the longest bar takes *width* cells, a count above zero at least one."""
    shown = rows[-MAX_ROWS:]
    most = max((count for _, count in shown), default=0)
    if most == 0:
        return []
    label = max(len(name) for name, _ in shown)
    number = len(f"{most:,}")
    lines = [f"... {len(rows) - len(shown):,} earlier rows"] if len(rows) > len(shown) else []
    for name, count in shown:
        size = max(1, round(count / most * width)) if count else 0
        lines.append(f"{name:<{label}}  {count:>{number},}  {mark * size}".rstrip())
    return lines
