"""O8: the sentence about a core that does not run.

Job: how long nothing has polled -> words. Must not know: commands, the store, when a core counts as gone (the core's).
"""

from __future__ import annotations

from pollconsole import words
from pollconsole.bridge.waiting import SILENT_AFTER_MS, is_running


def since_words(silent: int) -> str | None:
    """How long no core has run; None: it is not known (one that ended counts as silent for a minute, whenever it
    ended)."""
    return None if silent <= 2 * SILENT_AFTER_MS else words.ago(silent)


def warning(silent: int | None) -> str | None:
    """The sentence for stderr; None: a core is running."""
    if is_running(silent):
        return None
    if silent is None:
        since = "has run on this home yet"
    else:
        ago = since_words(silent)
        since = "is running" if ago is None else f"has run for {ago}"
    return f"warning: no core {since}: nothing is polled until 'pollconsole' or 'pollconsole run' is started"
