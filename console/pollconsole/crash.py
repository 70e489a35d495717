"""A crash of the screen, told without showing anything that it held.

Job: an exception -> a reference to print and a file with the scrubbed trace. Must not know: screens. Local variables,
messages and source lines that may hold provider text or a secret are never written: file, line and function alone.

Source: spec K1 (crash screens, tracebacks), V3.
"""

from __future__ import annotations

import os
import traceback
from pathlib import Path
from typing import Final

from pollconsole import __version__

MAX_FRAMES: Final = 60
MAX_CHAIN: Final = 5
FOLDER: Final = "crashes"


def scrubbed(error: BaseException) -> str:
    """Class names and places, no texts: neither messages (they quote values) nor locals nor source lines."""
    lines = [f"pollconsole {__version__}"]
    seen: BaseException | None = error
    for _ in range(MAX_CHAIN):
        if seen is None:
            break
        lines.append(f"{type(seen).__module__}.{type(seen).__qualname__}")
        frames = traceback.extract_tb(seen.__traceback__)[-MAX_FRAMES:]
        lines += [f"  {frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
        seen = seen.__cause__ or seen.__context__
    return "\n".join(lines) + "\n"


def record(error: BaseException, home: Path | None) -> tuple[str, Path | None]:
    """Write the scrubbed trace to a file that only its owner reads; (reference, path or None where it cannot be)."""
    reference = os.urandom(4).hex()
    if home is None:
        return reference, None
    path = home / FOLDER / f"{reference}.txt"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(scrubbed(error))
    except OSError:
        return reference, None
    return reference, path


def told(error: BaseException, reference: str, path: Path | None) -> str:
    """The sentence for people."""
    where = f"; trace without values: {path}" if path is not None else ""
    return f"the screen ended: {type(error).__name__}, reference {reference}{where}"
