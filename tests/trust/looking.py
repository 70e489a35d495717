"""An operator at the real console on a pty: looks at every screen, opens cards, copies, exports, approves one request.

Must not know: what is a secret among what is shown.
"""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Iterator

from tests.console.operator_keys import Operator
from tests.console.ptylib import Terminal
from tests.trust.life import Life


@contextlib.contextmanager
def console(life: Life, how: str = "picture") -> Iterator[Terminal]:
    terminal = life.screen(how)
    try:
        yield terminal
    finally:
        life.keep("terminal", bytes(terminal.raw))
        terminal.close()


def _approve(life: Life, terminal: Terminal) -> None:
    """The card of one request, with two keys; the console's own core then sends it."""
    for keys in ("A", "\r"):
        _press(life, terminal, keys)
    terminal.until(lambda: "ARMED" in terminal.text and "approve" in terminal.text, what="an armed card")
    operator = Operator(lambda: terminal.text, terminal.send)
    terminal.until(lambda: operator.look() or bool(re.search(r"op-\S+: approve", terminal.text)), what="it is told")
    terminal.run_for(2.0)
    for keys in ("\x1b", "\x1b"):
        _press(life, terminal, keys)


def screens(life: Life, approve: bool) -> None:
    """Every screen, cards opened and left, rows exported, copies to the terminal and to a file; then quit."""
    for way in ("terminal", "file"):
        (life.home / "ui.json").write_text(json.dumps({"clipboard": way}))
        with console(life) as terminal:
            terminal.until(lambda: "op-" in terminal.text, what="rows")
            if approve and way == "terminal":
                _approve(life, terminal)
            for keys in ("1", "c", "C", "x", "X", "\r", "c", "C", "G", "\x1b", "2", "\r", "C", "\x1b"):
                _press(life, terminal, keys)
            for screen in ("E", "A"):
                _press(life, terminal, screen)
                for _ in range(4):
                    for keys in ("\r", "G", "\x1b[6~", "\x1b", "j"):
                        _press(life, terminal, keys)
                _press(life, terminal, "\x1b")
            for screen in ("K", "P", "L", "M", "V", ",", "?"):
                for keys in (screen, "\r", "C", "\x1b", "\x1b"):
                    _press(life, terminal, keys)
            for keys in ("/", "cn", "\r", "n"):
                _press(life, terminal, keys)
            _quit(life, terminal)


def _press(life: Life, terminal: Terminal, keys: str) -> None:
    """One burst, and until what it changed was drawn: nothing more comes for a while."""
    terminal.send(keys)
    seen, end = -1, time.monotonic() + 3
    while len(terminal.raw) != seen and time.monotonic() < end:
        seen = len(terminal.raw)
        terminal.run_for(0.12)
    copied = life.home / "clipboard.txt"
    if keys in "cC" and copied.exists():
        life.keep("clipboard.txt", copied.read_bytes())


def _quit(life: Life, terminal: Terminal) -> None:
    for _ in range(5):
        _press(life, terminal, "\x1b")
        terminal.send("q")
        terminal.run_for(0.3)
        terminal.send("Q")
        for _ in range(300):
            if terminal.exit_code is not None:
                return
            terminal.pump(0.05)
    raise AssertionError(f"the console does not quit:\n{terminal.text}")
