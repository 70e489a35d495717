"""The process: what happens before anything else is imported.

Job: open the standard streams that are closed, take the keys of the environment away, answer `--version` at once, hand
over to the command line, end with its exit code. Must not know: any command. Everything heavy is imported by the
command that needs it.
"""

from __future__ import annotations

import os
import sys

from pollconsole.environment import scrub_environment

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_closed_streams() -> None:
    """Put `os.devnull` where standard input, output or error is closed (`>&-`).

    Else a stream is None and a write to it a crash, and the next file that is opened takes its descriptor.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # the lowest free number: those below are open
            os.open(os.devnull, os.O_RDONLY if mode == "r" else os.O_WRONLY)
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 - for the whole process


def main() -> None:
    """Run `pollconsole` with this process's arguments and exit."""
    open_closed_streams()
    scrubbed = scrub_environment()
    os.umask(0o077)  # every file that a command makes is the user's alone
    if sys.argv[1:] == ["--version"]:
        from pollconsole import __version__

        print(f"pollconsole {__version__}")
        raise SystemExit(0)
    try:
        from pollconsole.cli.entry import run

        code = run(sys.argv[1:], scrubbed=scrubbed, own_process=True)
    except KeyboardInterrupt:  # while modules are imported; later ones are told by the command line
        code = 130
    raise SystemExit(code)


if __name__ == "__main__":
    main()
