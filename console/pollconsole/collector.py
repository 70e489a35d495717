"""Python's garbage collector, which rests while the program starts.

Job: put it to rest, wake it. Must not know: what is started. Imports and the first picture make many objects and hardly
any garbage; walking over all of them again and again took a tenth of a start's processor time.
"""

from __future__ import annotations

import gc


def rest() -> None:
    """No collection until `wake`."""
    gc.disable()


def wake() -> None:
    """Collect again, but never walk over what is there now: modules and classes stay. Nothing where it is awake."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
