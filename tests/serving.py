"""A server of the standard library on a thread of its own, for as long as a block lasts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import TypeVar

Server = TypeVar("Server", bound=ThreadingHTTPServer)
LIMIT_S = 10.0
"""How long its thread may take to end."""
LOOK_S = 0.02
"""How soon it sees that it shall end."""


@contextmanager
def serving(server: Server) -> Iterator[Server]:
    """*server*, answering; ended, and its socket closed, whatever happens in the block."""
    thread = threading.Thread(target=server.serve_forever, args=(LOOK_S,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(LIMIT_S)
