"""From an exception to what is said of it and the exit code.

Job: every way a command can fail ends here: one or a few lines on stderr, with `--json` also
`{"error": {"code", "message", ...}}` as the one document on stdout, and never a traceback on a screen.
Must not know: commands.

Exit codes: 2 usage or refused input; 3 what was asked about is there; 1 our side (store, keyring, a crash);
130 interrupted; 141 the reader of a pipe left.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from pollconsole.cli import out

OUR_FAULT = 1
REFUSED = 2
DOUBTFUL = 3
"""What was asked about is there: a warning of a contract, a decision that would differ."""
DECISION_WANTED = 10
"""An operator was asked, as for `wait`: the command is given again after the answer."""
INTERRUPTED = 130
READER_LEFT = 141


def report(error: BaseException, *, as_json: bool, home: Path | None, argv: list[str]) -> int:
    """Say what *error* means and return the exit code."""
    if isinstance(error, click.exceptions.Exit):
        return error.exit_code
    if isinstance(error, click.Abort | KeyboardInterrupt | EOFError):
        out.note("interrupted")
        if as_json:
            out.document({"error": {"code": "interrupted", "message": "interrupted"}})
        return INTERRUPTED
    if isinstance(error, BrokenPipeError | out.ReaderLeft):
        forget_stdout()
        return READER_LEFT
    if isinstance(error, click.ClickException):
        return _say(as_json, "usage", error.format_message(), REFUSED, hint=_help_hint(error, argv))
    known = _ours(error)
    if known is not None:
        code, exit_code, details = known
        return _say(as_json, code, message(error), exit_code, details, hint=_place_hint(code, home))
    if isinstance(error, OSError) and error.filename is None and error.errno is not None:
        forget_stdout()
        return _say(False, "output", f"the output could not be written: {error.strerror}", OUR_FAULT)
    return _crash(error, as_json, home)


def _ours(error: BaseException) -> tuple[str, int, Mapping[str, Any]] | None:
    """Code, exit code and details of an error of the core; None: no error of the core."""
    from pollcore.facts import (
        CredentialUnavailable,
        PollconsoleError,
        Refused,
        SealedUnreadable,
        Stale,
        StoreUnusable,
    )

    match error:
        case Refused(code="approval_wanted"):
            return error.code, DECISION_WANTED, {}
        case Refused():
            return error.code, REFUSED, {key: _plain(v) for key, v in error.details.items() if v is not None}
        case Stale():
            return "stale", REFUSED, {}
        case StoreUnusable():
            return "store_unusable", OUR_FAULT, {}
        case SealedUnreadable():
            return "sealed_unreadable", OUR_FAULT, {}
        case CredentialUnavailable():
            return "credential_unavailable", OUR_FAULT, {"detail": str(error.detail)}
        case PollconsoleError():
            return "error", OUR_FAULT, {}
    return None


def ours(error: BaseException) -> tuple[str, int, Mapping[str, Any]]:
    """Code, exit code and details of *error*, whatever it is; what is none of the core's is a fault on our side."""
    return _ours(error) or ("internal", OUR_FAULT, {})


def message(error: BaseException) -> str:
    """The core's text; of a contract's fault in one line, without rule ids."""
    from pollconsole import words
    from pollcore.facts import ContractError

    return words.sentence(str(error)) if isinstance(error, ContractError) else str(error)


def _say(
    as_json: bool, code: str, message: str, exit_code: int, details: Mapping[str, Any] | None = None, hint: str = ""
) -> int:
    out.note(f"pollconsole: {message}")
    if hint:
        out.note(hint)
    if as_json:
        out.document({"error": {**(details or {}), "code": code, "message": message}})
    return exit_code


def _help_hint(error: click.ClickException, argv: list[str]) -> str:
    context = getattr(error, "ctx", None)
    path = context.command_path if isinstance(context, click.Context) else "pollconsole"
    return "" if "--help" in argv else f"see: {path} --help"


def _place_hint(code: str, home: Path | None) -> str:
    """Where the settings lie that are wrong: an error in them names file, line and key alone, one of a key file not
    even the key."""
    if code not in ("config", "instance", "key_file"):
        return ""
    from pollconsole import bridge

    named = bridge.key_file_named(home) if code == "key_file" else ""
    return f"{named}in the home {bridge.home_path(home)}; 'pollconsole doctor' looks at all of it"


def _plain(value: object) -> Any:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    return str(value)


def _crash(error: BaseException, as_json: bool, home: Path | None) -> int:
    """One line with a reference; the trace goes where the screen's traces go, `HOME/crashes/REFERENCE.txt`."""
    reference, place = _recorded(error, home)
    where = f"the trace is in {place}" if place else "the trace could not be written"
    return _say(
        as_json, "internal", f"a fault of ours, reference {reference} ({type(error).__name__}); {where}", OUR_FAULT,
        {"reference": reference},
    )  # fmt: skip


def _recorded(error: BaseException, home: Path | None) -> tuple[str, Path | None]:
    """(reference, path of the trace). None: there is no home to write to (none is made), or no room."""
    from pollconsole import bridge, crash

    try:
        folder = bridge.home_path(home)
        return crash.record(error, folder if folder.is_dir() else None)
    except Exception:  # a fault while telling of a fault must not hide the first
        return crash.record(error, None)


def forget_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush does not complain again."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        pass
