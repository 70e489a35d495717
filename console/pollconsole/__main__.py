"""The process: what happens before anything else is imported.

Job: take the keys of the environment away, answer `--version` at once, hand over to the command line, end with its exit
code. Must not know: any command. Everything heavy is imported by the command that needs it.
"""

from __future__ import annotations

import os
import sys

from pollconsole.environment import scrub_environment


def main() -> None:
    """Run `pollconsole` with this process's arguments and exit."""
    scrubbed = scrub_environment()
    os.umask(0o077)  # every file that a command makes is the user's alone
    if sys.argv[1:] == ["--version"]:
        from pollconsole import __version__

        print(f"pollconsole {__version__}")
        raise SystemExit(0)
    try:
        from pollconsole.cli.entry import run

        code = run(sys.argv[1:], scrubbed=scrubbed)
    except KeyboardInterrupt:  # while modules are imported; later ones are told by the command line
        code = 130
    raise SystemExit(code)


if __name__ == "__main__":
    main()
