#!/usr/bin/env python3
"""From a key to the frame that shows its effect: 10,000 live operations and 100 polls a second, against an empty list.

Two consoles on two ptys, keys in turns (A B A B ...), so that a slow minute hits both; a bench server answers the
polls. Goal: the median on the full list at most 2.0 of the median on the empty one.

    python tests/bench/console_keys.py [--live 10000] [--per-second 100] [--rounds 25]
"""

import argparse
import tempfile
import time
from pathlib import Path

from _common import JobServer
from _console import Pty, console, make_home, median, noise, told

KEYS = (
    ("s", b"s", "o operation", b"\x1b", "E decide"),
    ("/", b"/", "Enter keep", b"\x1b", "E decide"),
    ("?", b"?", "move, scroll", b"\x1b", "E decide"),
    ("/0", b"/0", " / 0_", b"\x1b", "E decide"),
)
"""Name, keys, what shows their effect, the keys back, what shows that: effects that are the same on both lists."""
PAGE = ("2", b"2", "[needs you", b"1", "[open")
"""A whole page of rows is drawn anew, which an empty list has not: told beside the ratio."""


def press(p, keys, words):
    p.settle(0.03, 1.0)
    since, at = len(p.raw), time.perf_counter()
    p.send(keys)
    return p.until(words, since=since) - at


def below(p):
    """What the row under the cursor's will look like when the cursor stands there."""
    lines = p.screen.text().split("\n")
    at = next(n for n, line in enumerate(lines) if line.startswith("> "))
    return f"\n> {lines[at + 1][2:13]}"


def warm(p):
    p.until("E decide")
    p.run_for(3)
    for _, keys, shows, back, then in KEYS:
        press(p, keys, shows)
        press(p, back, then)


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--live", type=int, default=10_000)
    ap.add_argument("--per-second", type=int, default=100)
    ap.add_argument("--rounds", type=int, default=25)
    a = ap.parse_args()
    delay = a.live // a.per_second
    with tempfile.TemporaryDirectory() as scratch, JobServer(1_000_000) as srv:
        # due from the first second on, spread over one round of polls
        full = make_home(Path(scratch) / "full", a.live, url=srv.url, delay=delay, due_in=delay * 1000, due_from=0)
        empty = make_home(Path(scratch) / "empty", 0, url=srv.url, delay=delay)
        with Pty(console(full)) as f, Pty(console(empty)) as e:
            warm(f)
            warm(e)
            took = {name: ([], []) for name, *_ in KEYS}
            move, page, began, seen = [], [], time.perf_counter(), srv.stats()["requests"]
            for _ in range(a.rounds):
                for name, keys, shows, back, then in KEYS:
                    for side, p in enumerate((f, e)):
                        took[name][side].append(press(p, keys, shows))
                        press(p, back, then)
                        time.sleep(0.02)
                move.append(press(f, b"j", below(f)))
                page.append(press(f, *PAGE[1:3]))
                page.append(press(f, *PAGE[3:5]))
            polls = (srv.stats()["requests"] - seen) / (time.perf_counter() - began)
    all_full = [t for name in took for t in took[name][0]]
    all_empty = [t for name in took for t in took[name][1]]
    told(
        bench="keys",
        live=a.live,
        polls_per_s=round(polls),
        full_ms=round(median(all_full) * 1e3, 1),
        empty_ms=round(median(all_empty) * 1e3, 1),
        ratio=round(median(all_full) / median(all_empty), 2),
        worst_full_ms=round(max(all_full) * 1e3),
        worst_empty_ms=round(max(all_empty) * 1e3),
        by_key={name: [round(median(t) * 1e3, 1) for t in both] for name, both in took.items()},
        page_ms=round(median(page) * 1e3, 1),
        j_ms=round(median(move) * 1e3, 1),
        **noise(),
    )
