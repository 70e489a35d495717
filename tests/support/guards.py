"""Two guards over the test process, as audit hooks. They know nothing of pytest and nothing of the product.

1. Loopback only: a test may connect, send, bind and resolve inside this machine, nowhere else. Names that are reserved
   for documentation and tests (RFC 6761: `.invalid`, `.test`, `.example`, `example.com` ...) fail to resolve at once,
   as a resolver without an answer would, so that a test can use them as "a host that does not exist".
2. The store belongs to SQLite: nobody opens `pollconsole.db`, `-wal` or `-shm` by hand in a process that may hold a
   connection. Closing such a foreign descriptor drops SQLite's POSIX locks, and two processes then write into
   different files. SQLite's own opens are not seen by the hook.

A breach raises PermissionError where it happens and is kept, so that code which hides the error still fails its test.
A subprocess is outside the guards: a test that must damage a store file does it there.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import threading

STORE_FILES = frozenset(("pollconsole.db", "pollconsole.db-wal", "pollconsole.db-shm"))
RESERVED_SUFFIXES = (".invalid", ".test", ".example", ".localhost", ".example.com", ".example.net", ".example.org")
LOCAL_FAMILIES = frozenset(
    getattr(socket, name) for name in ("AF_UNIX", "AF_NETLINK", "AF_VSOCK") if hasattr(socket, name)
)
#: Events of the socket module whose arguments are (socket, address).
ADDRESS_EVENTS = frozenset(("socket.connect", "socket.sendto", "socket.sendmsg", "socket.bind"))
NAME_EVENTS = frozenset(("socket.getaddrinfo", "socket.gethostbyname"))
#: A loop that breaches for ever must not fill the memory.
MAX_KEPT = 20

_breaches: list[str] = []
_installed = False


def install() -> None:
    """Add the hook to this process, once. An audit hook cannot be taken away again."""
    global _installed
    if not _installed:
        _installed = True
        sys.addaudithook(_hook)


def take() -> list[str]:
    """Return what was breached since the last call, oldest first, and forget it."""
    kept = _breaches[:]
    _breaches.clear()
    return kept


def is_loopback(host: str) -> bool:
    """Tell whether *host*, a literal address or a name, is this machine without asking a resolver."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _hook(event: str, args: tuple[object, ...]) -> None:
    if event == "open":
        _on_open(args[0])
    elif event in ADDRESS_EVENTS:
        _on_address(event, args[0], args[1])
    elif event in NAME_EVENTS:
        _on_name(_text(args[0]))


def _on_open(path: object) -> None:
    if isinstance(path, str | bytes) and os.path.basename(os.fsdecode(path)) in STORE_FILES:  # noqa: PTH119
        _breach(f"the store was opened by hand: {os.fsdecode(path)} (do it in a subprocess, or through SQLite)")


def _on_address(event: str, sock: object, address: object) -> None:
    if getattr(sock, "family", None) in LOCAL_FAMILIES or not isinstance(address, tuple) or not address:
        return
    host = _text(address[0])
    if not is_loopback(host):
        _breach(f"{event} beyond loopback: {host!r}")


def _on_name(host: str) -> None:
    name = host.rstrip(".").lower()
    if not name or is_loopback(name) or name == socket.gethostname().lower() or _is_literal(name):
        return
    if ("." + name).endswith(RESERVED_SUFFIXES):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    _breach(f"a name was resolved beyond this machine: {host!r}")


def _is_literal(host: str) -> bool:
    """A literal address asks no resolver; connecting to it is guarded on its own."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _text(value: object) -> str:
    if isinstance(value, bytes | bytearray):
        return bytes(value).decode("ascii", "backslashreplace")
    return "" if value is None else str(value)


def _breach(what: str) -> None:
    if len(_breaches) < MAX_KEPT:
        _breaches.append(f"{what} [thread {threading.current_thread().name}]")
    raise PermissionError(f"guard of the tests: {what}")
