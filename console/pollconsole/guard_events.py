"""What the guard's machine is told of one event of Textual's.

One job: from an event, and whose it is, to the one call of the machine. Knows no app, no screen and no meaning of a
key; it never decides.
"""

from __future__ import annotations

from textual import events

from pollconsole.guard import Guard
from pollconsole.stamping import Pointer, Stamp
from pollconsole.terminal_input import FenceReply, Stray


def tell(guard: Guard, event: events.Event, stamp: Stamp | None, at: float, navigation: frozenset[str]) -> bool:
    """Tell *guard* of *event*; whether nothing else may see it.

    Args:
        stamp: the input thread's, None for an event that did not come from the keyboard.
        at: when it was read, seconds of the guard's clock.
        navigation: keys that reach the card's own bindings.
    """
    if isinstance(event, FenceReply):
        if stamp is not None:
            guard.fence_reply(event.row, event.column, at)
    elif isinstance(event, events.AppFocus | events.AppBlur):
        guard.focus(at)
        return False
    elif isinstance(event, events.Paste):
        guard.paste(at)
    elif isinstance(event, Stray):
        guard.stray(at)
    elif isinstance(event, Pointer):
        guard.mouse(at)
    elif isinstance(event, events.MouseEvent):
        if not isinstance(event, events.MouseMove):
            guard.mouse(at)
    elif isinstance(event, events.Key) and not event.is_forwarded:
        isolated = stamp is not None and stamp.isolated
        used = guard.key(event.key, at, genuine=stamp is not None, isolated=isolated)
        return used or event.key not in navigation
    else:
        return False
    return True
