"""What leaves the screen: a copy for the terminal's clipboard, a file of rows.

Job: text -> the sequence that asks a terminal to keep it; documents -> one private file. Must not know: widgets, what
is shown. A terminal says nothing back, so a copy is "sent", never "copied".

Source: xterm's control sequences, OSC 52.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from pollconsole.safe import safe
from pollconsole.terminal_output import MAX_CLIPBOARD
from pollcore.facts import Instant, Refused, iso

FOLDER: Final = "exports"
MAX_COPIED: Final = MAX_CLIPBOARD // 4 * 3
"""Bytes of one copy: what many terminals still take."""


def clipboard_sequence(text: str) -> str:
    """OSC 52 for *text*, made harmless: what is pasted into a shell must not press keys there.

    Raises:
        Refused: it is longer than `MAX_COPIED`; nothing is cut silently.
    """
    raw = safe(text, MAX_COPIED, multiline=True).encode()
    if len(raw) > MAX_COPIED or len(text) > MAX_COPIED:
        raise Refused(
            f"{max(len(raw), len(text)):,} bytes are more than the {MAX_COPIED:,} that terminals take at once"
        )
    return f"\x1b]52;c;{base64.b64encode(raw).decode()}\x07"


def export(home: Path | None, documents: Iterable[Mapping[str, Any]], at: Instant) -> tuple[Path, int]:
    """Write *documents*, one JSON object a line, to a new file under HOME/exports (0700) that its owner alone reads
    (0600); its path and the number of lines.

    Raises:
        Refused: there is no home, or it cannot be written.
    """
    if home is None:
        raise Refused("this console has no home to export to; 'pollconsole list --json' prints the rows")
    stamp = iso(at).replace(":", "").replace("-", "").partition(".")[0] + "Z"
    folder = home / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        path, handle = _new_file(folder, f"operations-{stamp}")
        count = 0
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            for document in documents:
                file.write(json.dumps(document, ensure_ascii=True, separators=(",", ":")) + "\n")
                count += 1
    except OSError as error:
        raise Refused(f"nothing was exported: {folder}: {error.strerror or type(error).__name__}") from None
    return path, count


def _new_file(folder: Path, stem: str) -> tuple[Path, int]:
    for number in range(1, 100):
        path = folder / (f"{stem}.jsonl" if number == 1 else f"{stem}-{number}.jsonl")
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            continue
    raise FileExistsError(17, "too many exports in one second")
