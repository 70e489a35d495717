"""O8: the sentence about a core that does not run.

Job: how long nothing has polled -> words. Must not know: commands, the store, when a core counts as gone (the core's).
"""

from __future__ import annotations

from pollconsole import words
from pollconsole.bridge.waiting import SILENT_AFTER_MS, is_running, silent_ms

__all__ = ["SILENT_AFTER_MS", "is_running", "silent_ms", "warning"]


def warning(silent: int | None) -> str | None:
    """The sentence for stderr; None: a core is running."""
    if is_running(silent):
        return None
    if silent is None:
        since = "has run on this home yet"
    elif silent <= 2 * SILENT_AFTER_MS:  # an ended core counts as silent for a minute, whenever it ended
        since = "is running"
    else:
        since = f"has run for {words.ago(silent)}"
    return f"warning: no core {since}: nothing is polled until 'pollconsole' or 'pollconsole run' is started"
