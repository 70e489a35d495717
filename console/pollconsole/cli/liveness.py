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
    since = "has run on this home yet" if silent is None else f"has run for {words.ago(silent)}"
    return f"warning: no core {since}: nothing is polled until 'pollconsole' or 'pollconsole run' is started"
