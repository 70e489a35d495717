"""Files whose path a user or a folder names: opened without waiting, and only where they are plain files.

Job: the one way to open such a file for reading. Must not know: what is in it. A FIFO that nobody writes to would hold
up whoever opens it, for ever; a device would never end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

NO_PLAIN_FILE: Final = "it is no regular file"
_OPEN: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class TooLarge(OSError):
    """The file holds more than the limit; `strerror` says so."""


def open_plain(path: str | Path, *, follow: bool = True, pipes: bool = False) -> BinaryIO:
    """Open *path* for reading.

    Args:
        follow: Whether a link may lead to it.
        pipes: Whether a pipe is as good: one on a command line, as `<(command)` of a shell, which has its writer.

    Raises:
        OSError: it cannot be opened, or is neither a regular file nor, with *pipes*, a pipe (`strerror` is in words).
        ValueError: no path at all (a NUL in it).
    """
    flags = _OPEN | (0 if follow else os.O_NOFOLLOW)
    file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115 - handed on; Path has no opener
    try:
        kind = os.fstat(file.fileno()).st_mode
        if stat.S_ISFIFO(kind) and pipes:
            os.set_blocking(file.fileno(), True)
        elif not stat.S_ISREG(kind):
            raise OSError(errno.EINVAL, NO_PLAIN_FILE, str(path))
    except BaseException:
        file.close()
        raise
    return file


def why_unwritten(error: OSError) -> str:
    """Why a file could not be written, in words, with the way out where the disk is full."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{error.strerror}: free space there, or name a place on another disk"
    return error.strerror or type(error).__name__


def read_plain(path: str | Path, limit: int, *, follow: bool = True, pipes: bool = False) -> bytes:
    """All of the file, at most *limit* bytes.

    Raises:
        TooLarge: it holds more.
        OSError, ValueError: as `open_plain`.
    """
    with open_plain(path, follow=follow, pipes=pipes) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(errno.EFBIG, f"it holds more than {limit:,} bytes", str(path))
    return data
