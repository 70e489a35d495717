"""Output to a terminal that went away is dropped; it never blocks the app."""

from __future__ import annotations

import errno
import threading
from typing import IO, cast

import pytest
from textual.drivers._writer_thread import MAX_QUEUED_WRITES, WriterThread

from pollconsole.driver import _Output

LIMIT = 60.0


class Gone:
    """A terminal whose line was cut."""

    tried = 0

    def write(self, text: str) -> int:
        self.tried += 1
        raise OSError(errno.EIO, "Input/output error")

    def flush(self) -> None:
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.rule("V3")
def test_writing_on_after_a_hang_up_never_blocks_the_screen() -> None:
    terminal = Gone()
    writer = WriterThread(cast(IO[str], _Output(cast(IO[str], terminal))))
    writer.start()

    def write_much() -> None:
        for _ in range(MAX_QUEUED_WRITES * 3):
            writer.write("frame")
        writer.stop()

    screen = threading.Thread(target=write_much, daemon=True)
    screen.start()
    screen.join(LIMIT)
    assert not screen.is_alive()
    assert terminal.tried == 1
