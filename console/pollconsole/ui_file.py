"""HOME/ui.json: what the screen remembers, whoever puts it there.

Job: read it, replace named parts of it. Must not know: what the parts mean. A file that cannot be read is as good as
none: what the screen remembers is never worth a failure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pollconsole import bridge, home_files

FILE: Final = "ui.json"
"""In the home."""
MAX_BYTES: Final = 64 * 1024


def read(home: Path | None) -> dict[str, Any]:
    """All that is remembered; empty where there is no such file, or nothing in it can be understood."""
    if home is None:
        return {}
    try:
        found = json.loads(bridge.read_plain(home / FILE, MAX_BYTES).decode("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write(home: Path | None, parts: Mapping[str, Any]) -> bool:
    """Put *parts* in the place of those of their names, in one step, mode 0600; False where that cannot be written."""
    if home is None:
        return False
    try:
        home_files.replace(home / FILE, json.dumps({**read(home), **parts}, indent=1))
    except OSError:
        return False
    return True
