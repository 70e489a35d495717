"""The way in: arguments -> exit code.

Job: run one command with the guards that hold for all of them. Must not know: what commands do.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from pollconsole.cli import errors, out
from pollconsole.cli.base import Common
from pollconsole.cli.root import root

PROGRAM = "pollconsole"


def run(argv: Sequence[str], *, scrubbed: Sequence[str] = ()) -> int:
    """Run the command that *argv* names and return the exit code; raises nothing.

    *scrubbed*: names of environment variables that were taken away (G3), told on stderr.
    """
    out.prepare_streams()
    common = Common()
    arguments = list(argv)
    try:
        if scrubbed:
            out.note(f"ignored: {', '.join(scrubbed)} (variables that could press keys for an operator)")
        code = root.main(arguments, prog_name=PROGRAM, standalone_mode=False, obj=common)
        sys.stdout.flush()
    except BaseException as error:
        if isinstance(error, SystemExit):  # click's shell completion ends this way
            return error.code if isinstance(error.code, int) else 0
        # an argument error may be found before --json was read
        as_json = common.json or "--json" in arguments[: _end_of_options(arguments)]
        try:
            code = errors.report(error, as_json=as_json, home=common.home, argv=arguments)
            sys.stdout.flush()
        except (OSError, out.ReaderLeft):  # the reader of stdout or stderr left while the error was told
            errors.forget_stdout()
            return errors.READER_LEFT
    return code if isinstance(code, int) else 0


def _end_of_options(arguments: list[str]) -> int:
    return arguments.index("--") if "--" in arguments else len(arguments)
