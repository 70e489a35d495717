"""Themes of the user's own: files of HOME/themes, each checked whole; a bad one is named and left out.

Job: folder -> themes and complaints. Must not know: what a field means, screens. Nothing here ends the app.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pollconsole import bridge, themes
from pollconsole.safe import safe
from pollconsole.themes import Loaded
from pollcore.facts import Refused

FOLDER: Final = "themes"
"""In the home."""
MAX_FILES: Final = 50
MAX_BYTES: Final = 64 * 1024
"""Of one file."""
MARK_LENGTH: Final = 8
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,23}")


def available(home: Path | None) -> tuple[list[Loaded], list[str]]:
    """Shipped themes, then the user's own, which win over shipped ones of the same name; and what is wrong.

    A complaint is one sentence: file, line, key, why, the way out. Raises nothing for whatever lies in the folder.
    """
    found = {each.name: each for each in themes.shipped()}
    said: list[str] = []
    if home is not None:
        bases = dict(found)
        for path in _files(home / FOLDER, said):
            loaded = _load(path, bases, said)
            if loaded is not None:
                found[loaded.name] = loaded
    return list(found.values()), said


def has_own(home: Path | None) -> bool:
    """Whether there may be themes of the user's own; True too where that cannot be seen, which `available` tells."""
    if home is None:
        return False
    try:
        (home / FOLDER).lstat()
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _files(folder: Path, said: list[str]) -> list[Path]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix == ".toml")
    except FileNotFoundError:
        return []
    except OSError as error:
        said.append(f"{FOLDER}/: cannot be read ({error.strerror}); shipped themes alone are there")
        return []
    if len(paths) > MAX_FILES:
        said.append(f"{FOLDER}/: {len(paths)} files; the first {MAX_FILES} by name are read, take others away")
    return paths[:MAX_FILES]


def _load(path: Path, bases: Mapping[str, Loaded], said: list[str]) -> Loaded | None:
    import hashlib  # not for a start without files of one's own

    from pollconsole import theme_contrast

    where = f"{FOLDER}/{safe(path.name, 40)}"
    left_out = "; the theme is left out"
    try:
        if not _NAME.fullmatch(path.stem):
            raise Refused(f"{safe(path.name, 40)}: a name is 1 to 24 of a-z, 0-9 and '-'; rename the file")
        data = bridge.read_plain(path, MAX_BYTES)
        mark = "-" + hashlib.sha256(data).hexdigest()[:MARK_LENGTH]
        loaded = themes.read(path.stem, data.decode("utf-8"), bases=bases, mark=mark)
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        said.append(f"{where}:{line}: not UTF-8; save it as UTF-8{left_out}")
        return None
    except OSError as error:
        said.append(f"{where}: cannot be read ({error.strerror}){left_out}")
        return None
    except Refused as error:
        said.append(f"{FOLDER}/{error}{left_out}")
        return None
    weak = theme_contrast.weak(loaded)
    if weak:
        worst = min(weak, key=lambda each: each.ratio)
        said.append(
            f"{where}: hard to read: {worst.role} on {worst.ground} has a contrast of {worst.ratio:.1f}, "
            f"{theme_contrast.LEAST[worst.role]} is wanted ({len(weak)} such pairs); it can be chosen all the same"
        )
    return loaded
