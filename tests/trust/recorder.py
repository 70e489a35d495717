"""Runs a program on a pty of its own between it and the terminal, and writes down what the terminal sends it.

`python recorder.py KEYS PROGRAM...`: every byte that the terminal sends (keys, pastes, answers) goes to the file KEYS
too. Passes the size on; changes nothing.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import sys
import termios
import tty

SIZE = 8


def main(keys: str, program: list[str]) -> int:
    """The program's exit code."""
    pid, master = pty.fork()
    if pid == 0:
        os.execv(program[0], program)
    size = fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * SIZE)
    fcntl.ioctl(master, termios.TIOCSWINSZ, size)
    former = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        with open(keys, "ab", buffering=0) as record:  # noqa: PTH123
            while True:
                ready = select.select([0, master], [], [])[0]
                if 0 in ready:
                    sent = os.read(0, 65_536)
                    record.write(sent)
                    os.write(master, sent)
                if master in ready:
                    try:
                        shown = os.read(master, 65_536)
                    except OSError:
                        break
                    if not shown:
                        break
                    os.write(1, shown)
    finally:
        termios.tcsetattr(0, termios.TCSANOW, former)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1], sys.argv[2:]))
