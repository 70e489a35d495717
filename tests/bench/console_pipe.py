#!/usr/bin/env python3
"""The console at the end of a slow line: 80x24 through a pty that is read at 2,400 or 9,600 bytes a second, or stalls.

For each action: bytes that it cost, and seconds until its effect stood on the far screen. Then: a burst of keys (is one
lost, how long until the picture rests), a card (does it arm, after how long), and a reader that stands still for
--stall seconds (do polls go on, are keys handled, is it told, how many bytes come afterwards).

    python tests/bench/console_pipe.py [--live 1000] [--stall 60]
"""

import argparse
import tempfile
import time
from pathlib import Path

from _common import JobServer
from _console import Pty, console, make_home, told

ACTIONS = (
    ("j", b"j", None),
    ("PgDn", b"\x1b[6~", None),
    ("view 2", b"2", "[needs you"),
    ("view 1", b"1", "[open"),
    ("help", b"?", "Esc back"),
    ("leave", b"\x1b", "E decide"),
    ("filter", b"/", "Enter keep"),
    ("typed", b"a", " / a_"),
    ("clear", b"\x1b", "E decide"),
    ("detail", b"\r", "Esc back"),
    ("leave detail", b"\x1b", "E decide"),
    ("queue", b"E", "Enter open"),
    ("leave queue", b"\x1b", "E decide"),
)
SPEEDS = (None, 9_600, 2_400)
BURST = 10


def cursor(p):
    return next((n for n, line in enumerate(p.screen.text().split("\n")) if line.startswith("> ")), -1)


def act(p, keys, shows):
    """(bytes, seconds until it shows) of one action, after which the line rests."""
    p.settle(0.4, 8)
    before, at, stood = len(p.raw), time.perf_counter(), p.screen.text()
    p.send(keys)
    if shows is None:
        while p.screen.text().split("\n")[3:21] == stood.split("\n")[3:21] or not p.screen.whole:
            p.pump(0.02)
        shown = p.read_at
    else:
        shown = p.until(shows, since=before)
    return len(p.raw) - before, shown - at


def burst(p):
    """Ten times `j` as fast as they can be written."""
    p.send(b"g")
    p.settle(0.5, 10)
    first, at = cursor(p), time.perf_counter()
    for _ in range(BURST):
        p.send(b"j")
    while cursor(p) != first + BURST and time.perf_counter() - at < 30:
        p.pump(0.02)
    return {"lost": first + BURST - cursor(p), "s": round(time.perf_counter() - at, 2)}


def card(p):
    """Seconds from opening the first card until it is armed, and until it is left."""
    p.send(b"E")
    p.until("Enter open")
    at, before = time.perf_counter(), len(p.raw)
    p.send(b"\r")
    p.until("1-9 choose", limit=60)
    shown = p.read_at - at
    for _ in range(12):
        if "ARMED" in p.screen.text():
            break
        p.send(b"\x1b[6~")  # a long card has to be seen to its end
        end = time.perf_counter() + 4
        while "ARMED" not in p.screen.text() and time.perf_counter() < end:
            p.pump(0.02)
    armed = p.read_at - at if "ARMED" in p.screen.text() else None
    took = len(p.raw) - before
    p.send(b"\x1b")
    p.until("Enter open")
    p.send(b"\x1b")
    p.until("E decide")
    return {"shown_s": round(shown, 2), "armed_s": armed and round(armed, 2), "bytes": took}


def stall(p, srv, seconds):
    p.settle(0.5, 5)
    row, polls = cursor(p), srv.stats()["requests"]
    p.stalled = True
    p.run_for(seconds / 2)
    p.send(b"jj")
    p.run_for(seconds / 2)
    polls = srv.stats()["requests"] - polls
    p.stalled, before, at = False, len(p.raw), time.perf_counter()
    p.until("terminal was stalled", limit=20)
    told_after = p.read_at - at
    p.settle(0.2, 3)
    return {
        "polls_meanwhile": polls,
        "told_after_s": round(told_after, 2),
        "keys_lost": row + 2 - cursor(p),
        "bytes_afterwards": len(p.raw) - before,
        "said": next(line.strip()[:60] for line in p.screen.text().split("\n") if "stalled" in line),
    }


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--live", type=int, default=1_000)
    ap.add_argument("--stall", type=float, default=60)
    a = ap.parse_args()
    with tempfile.TemporaryDirectory() as scratch, JobServer(1_000_000) as srv:
        times = {"delay": 100, "due_in": 100_000, "due_from": 0, "ends_in": 3_000_000}
        home = make_home(Path(scratch) / "home", a.live, url=srv.url, asked=5, **times)
        for speed in SPEEDS:
            with Pty(console(home), columns=80, rows=24, drain=speed) as p:
                p.until("E decide")
                first, began = len(p.raw), time.perf_counter()
                p.run_for(10)
                rest = (len(p.raw) - first) / (time.perf_counter() - began)
                did = {name: act(p, keys, shows) for name, keys, shows in ACTIONS}
                told(
                    bench="pipe",
                    bytes_per_s=speed,
                    start_bytes=first,
                    watched_bytes_per_s=round(rest),
                    actions={name: [size, round(s, 2)] for name, (size, s) in did.items()},
                    burst=burst(p),
                    card=card(p),
                )
        with Pty(console(home), columns=80, rows=24) as p:
            p.until("E decide")
            p.run_for(3)
            told(bench="pipe", stalled_s=a.stall, **stall(p, srv, a.stall))
