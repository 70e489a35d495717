"""The way in: arguments -> exit code.

Job: run one command with the guards that hold for all of them; the bare call goes straight to the console, which shows
rows a tenth of a second sooner without the command line's library. Must not know: what commands do.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pollconsole import collector
from pollconsole.cli import out

PROGRAM = "pollconsole"


class Straight(NamedTuple):
    """A call that opens the console and nothing else."""

    home: Path | None
    read_only: bool


def run(argv: Sequence[str], *, scrubbed: Sequence[str] = (), own_process: bool = False) -> int:
    """Run the command that *argv* names and return the exit code; raises nothing.

    *scrubbed*: names of environment variables that were taken away (G3), told on stderr. *own_process*: this process
    runs this command and nothing else: it is hardened before it holds a secret (K1).
    """
    out.prepare_streams()
    straight = None if scrubbed else straight_call(argv)
    if straight is None:
        return _run_command(list(argv), scrubbed, own_process)
    collector.rest()
    try:
        from pollconsole import bridge

        glance = bridge.first_rows(straight.home)
        from pollconsole.app import run_console

        bridge.harden()
        code = run_console(straight.home, straight.read_only, glance)
        sys.stdout.flush()
    except BaseException as error:
        return _told(error, list(argv), as_json=False, home=straight.home)
    return code


def straight_call(argv: Sequence[str]) -> Straight | None:
    """What the bare call says; None: another call, or one that may be wrong: the command line reads it and says so."""
    if os.environ.get("TERM", "") in ("", "dumb") or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return None
    match list(argv):
        case []:
            return Straight(None, False)
        case ["--read-only"]:
            return Straight(None, True)
        case ["--home", home] | ["--home", home, "--read-only"] | ["--read-only", "--home", home]:
            plain = home and "\0" not in home and not home.startswith("-")
            return Straight(Path(home), len(argv) == 3) if plain else None
    return None


def _run_command(arguments: list[str], scrubbed: Sequence[str], own_process: bool) -> int:
    from pollconsole.cli.base import Common
    from pollconsole.cli.root import root

    common = Common(own_process=own_process)
    before = out.printed()
    try:
        if scrubbed:
            out.note(f"ignored: {', '.join(scrubbed)} (variables that could press keys for an operator)")
        code = root.main(arguments, prog_name=PROGRAM, standalone_mode=False, obj=common)
        sys.stdout.flush()
    except BaseException as error:
        # an argument error may be found before --json was read
        as_json = common.json or "--json" in arguments[: _end_of_options(arguments)]
        as_json = as_json and out.printed() == before  # behind a document, or a part of one, no second one is said
        return _told(error, arguments, as_json=as_json, home=common.home)
    return code if isinstance(code, int) else 0


def _told(error: BaseException, arguments: list[str], *, as_json: bool, home: Path | None) -> int:
    """The exit code of *error*, which was told."""
    from pollconsole.cli import errors

    if isinstance(error, SystemExit):  # click's shell completion ends this way
        return error.code if isinstance(error.code, int) else 0
    try:
        code = errors.report(error, as_json=as_json, home=home, argv=arguments)
        sys.stdout.flush()
    except (BrokenPipeError, out.ReaderLeft):  # the reader of stdout or stderr left while the error was told
        errors.forget_stdout()
        return errors.READER_LEFT
    except OSError:  # no room for it: standard error has it, if that has room
        errors.forget_stdout()
        return errors.OUR_FAULT
    return code


def _end_of_options(arguments: list[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)
