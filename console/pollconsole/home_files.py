"""Files of the home that are written whole: in one step, for their owner alone.

Job: text -> a file of mode 0600, never half written. Must not know: what is in it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Put *text* in the place of whatever *path* held.

    Raises:
        OSError: it cannot be written; what was there is there still.
    """
    with _beside(path, text) as temporary:
        os.replace(temporary, path)  # noqa: PTH105


def create(path: Path, text: str) -> None:
    """Put *text* where nothing is.

    Raises:
        FileExistsError: something is there, be it a link that leads nowhere.
        OSError: it cannot be written; nothing is there.
    """
    with _beside(path, text) as temporary:
        try:
            os.link(temporary, path)
        except FileExistsError:
            raise
        except OSError:  # a file system without links
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            os.replace(temporary, path)  # noqa: PTH105


@contextlib.contextmanager
def _beside(path: Path, text: str) -> Iterator[str]:
    """A file of mode 0600 beside *path* that holds *text*; it is taken away again where it was not moved."""
    temporary = ""
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", encoding="utf-8", delete=False
        ) as file:
            temporary = file.name  # made with mode 0600
            file.write(text)
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
