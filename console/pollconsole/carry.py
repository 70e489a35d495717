"""What leaves the screen as a file: rows of a view, and a copy that no clipboard takes.

Job: documents -> one new private file; text -> HOME/clipboard.txt. Must not know: widgets, what is shown, terminals.

Source: RFC 4180 (CSV); CWE-1236 (a cell that a spreadsheet takes for a formula).
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from pollconsole import home_files
from pollconsole.carry_clipboard import harmless
from pollconsole.safe import safe
from pollcore.facts import Instant, Refused, iso

FOLDER: Final = "exports"
CLIPBOARD: Final = "clipboard.txt"
"""In the home: the last copy that did not go to a terminal."""
MAX_FILE_COPY: Final = 1_000_000
"""Characters of a copy into that file."""
MAX_CELL: Final = 4_000
"""Characters of one cell."""
MAX_SAME_SECOND: Final = 100
FORMULA: Final = "=+-@"
"""What a spreadsheet takes for the beginning of a formula."""
COLUMNS: Final = (
    *("operation_id", "provider", "account", "provider_job_id", "label", "status", "last_known_state"),
    *("last_http_code", "last_http_at", "last_http_request_id", "started_at", "deadline_at", "useful_until"),
    *("provider_expires_at", "status_requests_used", "max_status_requests", "transport_failures_used"),
    *("max_transport_failures", "rate_limited_used", "max_rate_limited", "completed_polls", "next_poll_at"),
    *("delay_source", "hold_until", "stop_reason", "stop_detail", "result_permits", "extensions", "credential"),
    *("caller", "resubmit_of", "contract_digest"),
)
"""Of the CSV; names as in `list --json`, those of an inner document after its own. Result fields are left out."""


class Format(StrEnum):
    """The value is the ending of the file."""

    JSON_LINES = "jsonl"
    CSV = "csv"


def export(
    home: Path | None, documents: Iterable[Mapping[str, Any]], at: Instant, form: Format = Format.JSON_LINES
) -> tuple[Path, int]:
    """Write *documents* to a new file under HOME/exports (0700) that its owner alone reads (0600); its path and the
    number of rows.

    Raises:
        Refused: there is no home, or it cannot be written.
    """
    if home is None:
        raise Refused("this console has no home to export to; 'pollconsole list --json' prints the rows")
    stamp = iso(at).replace(":", "").replace("-", "").partition(".")[0].rstrip("Z") + "Z"
    folder = home / FOLDER
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        path, handle = _new_file(folder, f"operations-{stamp}", form)
        count = 0
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            if form is Format.CSV:
                file.write(csv_line(COLUMNS))
            for document in documents:
                file.write(csv_line(_cells(document)) if form is Format.CSV else _json_line(document))
                count += 1
    except OSError as error:
        raise Refused(f"nothing was exported: {folder}: {error.strerror or type(error).__name__}") from None
    return path, count


def keep_copy(home: Path | None, text: str) -> str:
    """Put *text*, made harmless, into HOME/clipboard.txt (0600); what to say of it.

    Raises:
        Refused: there is no home, it is too long, or it cannot be written.
    """
    if home is None:
        raise Refused("there is no home to write it to")
    if len(text) > MAX_FILE_COPY:
        raise Refused(f"{len(text):,} characters are more than the {MAX_FILE_COPY:,} that are kept")
    try:
        home_files.replace(home / CLIPBOARD, harmless(text, MAX_FILE_COPY) + "\n")
    except OSError as error:
        raise Refused(f"{CLIPBOARD} cannot be written: {error.strerror or type(error).__name__}") from None
    return f"written to {CLIPBOARD} in the home"


def csv_line(cells: Iterable[object]) -> str:
    """One line of CSV, quoted where needed. A text that a spreadsheet would calculate begins with an apostrophe."""
    import csv
    import io

    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([cell(each) for each in cells])
    return out.getvalue()


def cell(value: object) -> str:
    """*value* as text without control characters that no spreadsheet takes for a formula."""
    if value is None:
        return ""
    text = safe(str(value), MAX_CELL)
    # wide forms of the signs count where the spreadsheet's language is one that types them
    begins = unicodedata.normalize("NFKC", text.lstrip()[:1])
    return f"'{text}" if begins and begins in FORMULA and not isinstance(value, int) else text


def _cells(document: Mapping[str, Any]) -> Iterator[object]:
    http = document.get("last_http") or {}
    inner = {
        **{f"last_http_{name}": value for name, value in http.items()},
        "result_permits": (document.get("result") or {}).get("permits"),
    }
    for name in COLUMNS:
        yield inner.get(name, document.get(name))


def _json_line(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=True, separators=(",", ":")) + "\n"


def _new_file(folder: Path, stem: str, form: Format) -> tuple[Path, int]:
    for number in range(1, MAX_SAME_SECOND):
        path = folder / (f"{stem}.{form}" if number == 1 else f"{stem}-{number}.{form}")
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            continue
    raise FileExistsError(17, "too many exports in one second")
