"""Take the keys of the environment away before Textual reads them.

One job: remove every ``TEXTUAL*`` variable. ``TEXTUAL_PRESS`` presses keys, ``TEXTUAL_DRIVER`` swaps the terminal
driver, ``TEXTUAL_DEBUG`` writes typed keys to a file. Textual reads them once, while it is imported, so this module
imports nothing of it and ``main`` calls it before anything else.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping

PREFIX = "TEXTUAL"


def scrub_environment(environ: MutableMapping[str, str] | None = None) -> tuple[str, ...]:
    """Remove all variables whose name starts with ``TEXTUAL``; return their names, sorted, for a warning.

    Call it first in ``main``, before the first import of textual. Called later it still keeps them from child
    processes; this process is then guarded by `GuardDriver` alone, which takes no key that it did not read itself.

    Args:
        environ: where to remove from; the process's environment by default.

    Source: spec G3 (environment variables that press keys are ignored).
    """
    target = os.environ if environ is None else environ
    names = tuple(sorted(name for name in target if name.upper().startswith(PREFIX)))
    for name in names:
        del target[name]
    return names
