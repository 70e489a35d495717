"""Files of the home that are written whole: in one step, for their owner alone.

Job: text -> a file of mode 0600, never half written. Must not know: what is in it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Put *text* in the place of whatever *path* held.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", encoding="utf-8", delete=False
        ) as file:
            temporary = file.name  # made with mode 0600
            file.write(text)
        os.replace(temporary, path)  # noqa: PTH105
    except OSError:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise
