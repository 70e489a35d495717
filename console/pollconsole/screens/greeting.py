"""What a console with nothing in it says: what this is, and the two ways to see something happen.

Job: pure lines. Must not know: widgets, the core.
"""

from __future__ import annotations

from typing import Final

from pollconsole.draw import Line

_WHAT: Final = (
    "An agent or script hands the wait for a long job over here, with limits.",
    "The core asks the provider as its contract allows, counts, and stops.",
    "What goes beyond comes to you as a card; only your keys can grant it.",
)


def greeting_lines(*, demo: bool, read_only: bool, providers: str = "P", keys: str = "?") -> list[Line]:
    """Welcome, three lines of what this is, the way on. *providers*, *keys*: the keys that show them."""
    lines: list[Line] = [(("Welcome. No operation was handed over yet.", "title"),), ()]
    lines += [((each, "text"),) for each in _WHAT]
    lines.append(())
    if demo:
        return [*lines, (("The demo hands over its first jobs in a moment.", "muted"),)]
    lines += [
        (("See it work, without account or network (end this console first):", "muted"),),
        (("  pollconsole demo", "key"),),
        (),
        (("The first provider: its contract into HOME/providers/, then a job:", "muted"),),
        (("  pollconsole provider check ./acme.toml", "key"), (f"   {providers} shows all there are", "muted")),
        (("  pollconsole submit --provider acme --job-id JOB --deadline 30m", "key"),),
    ]
    lines += [(), (((f"{keys} lists every key. Nothing that you press here can grant anything.", "muted")),)]
    if read_only:
        lines.append((("This console was started to look: it polls nothing itself.", "held"),))
    return lines
