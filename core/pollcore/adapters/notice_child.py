"""A process of its own that sends one message through apprise, and ends. The only file that imports it.

Run as a script, never imported by the program: one JSON object on standard input (`url`, `title`, `body`; `check` true:
look at the address alone), one JSON object on standard output (`ok`, `why`). Whatever a service or a library says stays
in here: `why` is one of our own words. Apprise brings a hundred plugins and reads proxies, netrc and roots from the
environment, so that whoever starts this gives it an environment of its own.
Source: spec K1, H7.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
from typing import Any

NO_LIBRARY = "no_library"
NOT_AN_ADDRESS = "not_an_address"
REFUSED = "refused"
FAULT = "fault"
MAX_INPUT = 64 * 1024


def harden() -> None:
    """No core file, no reading of this memory by others of the user; no log of any library."""
    logging.disable(logging.CRITICAL)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)


def send(asked: dict[str, Any]) -> str | None:
    """None: the service took it (or, with `check`, the address can be used)."""
    try:
        import apprise
    except ImportError:
        return NO_LIBRARY
    asset = apprise.AppriseAsset(secure_logging=True, async_mode=False, storage_mode="memory", app_id="pollconsole")
    sender = apprise.Apprise(asset=asset)
    if not sender.add(asked["url"]) or len(sender) != 1:
        return NOT_AN_ADDRESS
    if asked.get("check"):
        return None
    taken = sender.notify(title=asked["title"], body=asked["body"], body_format=apprise.NotifyFormat.TEXT)
    return None if taken else REFUSED


def main() -> None:
    """One message."""
    harden()
    answer, sys.stdout = sys.stdout, sys.stderr  # plugins that print are not heard
    try:
        why = send(json.loads(sys.stdin.buffer.read(MAX_INPUT)))
    except BaseException:
        why = FAULT
    answer.write(json.dumps({"ok": why is None, "why": why}))
    answer.flush()
    os._exit(0)  # plugins leave threads behind


if __name__ == "__main__":
    main()
