"""Keeps a process from telling secrets by accident.

Job: silence libraries that log addresses and headers, print crashes without locals and scrubbed, forbid core files,
drop what the environment asks of TLS. Installed once, first thing, by whatever starts a core or a console.
Must not know: screens (they pass a writer), what a secret is for.
Source: spec K1; reliability notes, section 7; invariant I21. Python cannot wipe a string: secrets are short-lived.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final

from pollcore.adapters.scrub import scrub_text

LOGGERS: Final = (
    "httpx",
    "httpx2",
    "httpcore",
    "httpcore2",
    "h11",
    "h2",
    "hpack",
    "keyring",
    "jeepney",
    "secretstorage",
    "urllib3",
    "botocore",
    "asyncio",
)
"""They log whole URLs at INFO, response headers and messages with values at DEBUG; asyncio's debug mode shows callbacks
with their arguments. What its loops cannot hand to anybody goes through `watch_loop`."""
MAX_TRACE: Final = 64 * 1024
DROPPED: Final = ("SSLKEYLOGFILE",)
_PR_SET_DUMPABLE: Final = 4

Writer = Callable[[str], None]


def harden() -> None:
    """For a process that runs the core: no core file, no reading of our memory, crash hooks without locals (K1).

    Called once by the program's entry, never by a library user's process.
    """
    harden_process()
    install_hooks()
    hush_loggers()


def hush_loggers() -> None:
    """Set every logger of LOGGERS to WARNING and keep its records from all handlers, whatever the root is set to."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.setLevel(logging.WARNING)
        logger.propagate = False
        # without any handler, logging's last resort would print warnings to stderr
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())


def trace_text(error: BaseException) -> str:
    """The traceback of *error* without locals, scrubbed, at most MAX_TRACE characters (the end, where the error is)."""
    made = traceback.TracebackException(type(error), error, error.__traceback__, capture_locals=False)
    text = scrub_text("".join(made.format()))
    return text if len(text) <= MAX_TRACE else f"[{len(text) - MAX_TRACE} characters left out]\n{text[-MAX_TRACE:]}"


def install_hooks(write: Writer | None = None) -> Callable[[], None]:
    """Replace the process's last-resort printers (main thread, threads, finalisers).

    Args:
        write: Takes one finished text; default: stderr. Its own errors are swallowed: there is no place left to tell.

    Returns:
        Puts the former hooks back (tests).
    """
    tell = _guarded(write or _to_stderr)
    former = sys.excepthook, threading.excepthook, sys.unraisablehook

    def on_crash(kind: type[BaseException], error: BaseException, trace: object) -> None:
        del kind, trace
        tell("interrupted\n" if isinstance(error, KeyboardInterrupt) else trace_text(error))

    def on_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not issubclass(args.exc_type, SystemExit):
            tell(f"in thread {args.thread.name if args.thread else '?'}:\n{trace_text(args.exc_value)}")

    def on_unraisable(args: sys.UnraisableHookArgs) -> None:
        # the object's repr may show anything: its type is enough
        what = f"ignored, from {type(args.object).__name__}:\n"
        tell(what + (trace_text(args.exc_value) if args.exc_value is not None else f"{args.exc_type.__name__}\n"))

    sys.excepthook, threading.excepthook, sys.unraisablehook = on_crash, on_thread, on_unraisable

    def restore() -> None:
        sys.excepthook, threading.excepthook, sys.unraisablehook = former

    return restore


def watch_loop(loop: asyncio.AbstractEventLoop, write: Writer | None = None) -> None:
    """Have *loop* report what nobody awaited in the same manner; its context's reprs (tasks, futures) are left out."""
    tell = _guarded(write or _to_stderr)

    def on_error(_: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        error = context.get("exception")
        text = scrub_text(str(context.get("message", "")))
        tell(f"{text}\n{trace_text(error) if isinstance(error, BaseException) else ''}")

    loop.set_exception_handler(on_error)


def harden_process() -> tuple[str, ...]:
    """No core files; on Linux not readable by other processes of the user either (/proc/PID/mem, ptrace).

    Also drops DROPPED from the environment, so that no library and no child obeys it.

    Returns:
        What this system does not offer, for `doctor`; empty: all of it.
    """
    missing = []
    for name in DROPPED:
        os.environ.pop(name, None)
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, ValueError, OSError):
        missing.append("core files cannot be forbidden here")
    if sys.platform == "linux":
        import ctypes

        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
            missing.append("the process's memory stays readable to the same user")
    return tuple(missing)


def _to_stderr(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _guarded(write: Writer) -> Writer:
    def tell(text: str) -> None:
        try:
            write(text)
        except Exception:
            pass

    return tell
